"""`tf.flags`: command-line flags in the manner of absl, without absl.

A program defines flags with `DEFINE_*` and reads them from `FLAGS`. `tf.app.run` parses the command
line; reading a flag before that parses it too.
"""

import difflib
import enum
import os
import sys
import textwrap

from ferroflow import _task_flags


class Error(Exception):
    """The base class of all errors of flags."""


class CantOpenFlagFileError(Error):
    pass


class DuplicateFlagError(Error):
    pass


class IllegalFlagValueError(Error):
    pass


class UnparsedFlagAccessError(Error):
    pass


class ValidationError(Error):
    pass


class UnrecognizedFlagError(Error):
    def __init__(self, flagname, flagvalue="", suggestions=None):
        self.flagname, self.flagvalue = flagname, flagvalue
        tip = f". Did you mean: {', '.join(suggestions)} ?" if suggestions else ""
        super().__init__(f"Unknown command line flag '{flagname}'{tip}")


class _Parser:
    """Turns the text of a flag into its value."""

    kind = "string"
    syntactic_help = ""

    def parse(self, argument):
        return argument

    def text(self, value):
        return str(value)


class ArgumentParser(_Parser):
    def flag_type(self):
        return self.kind


class _Number(_Parser):
    what = "number"

    def __init__(self, lower_bound=None, upper_bound=None):
        self.lower, self.upper = lower_bound, upper_bound
        self.has_bounds = lower_bound is not None or upper_bound is not None

    def parse(self, argument):
        if isinstance(argument, bool):
            raise ValueError(f"not a valid {self.what}: {argument!r}")
        value = self.read(argument)
        if self.lower is not None and value < self.lower or self.upper is not None and value > self.upper:
            low = "-inf" if self.lower is None else self.lower
            high = "inf" if self.upper is None else self.upper
            if self.upper is None and self.lower in (0, 1):
                sort = "non-negative" if self.lower == 0 else "positive"
                raise ValueError(f"{value} is not a {sort} {self.what.split()[-1]}")
            raise ValueError(f"{value} is not {self.what} in the range [{low}, {high}]")
        return value

    def read(self, argument):
        return float(argument)


class FloatParser(_Number):
    kind, what = "float", "a number"


class IntegerParser(_Number):
    kind, what = "int", "an integer"

    def read(self, argument):
        if isinstance(argument, str):
            digits = argument.strip().lower().lstrip("+-")
            base = 16 if digits.startswith("0x") else 8 if digits.startswith("0o") else 10
            return int(argument, base)
        if isinstance(argument, int):
            return argument
        raise TypeError(f"Expect argument to be a string or int, found {type(argument)}")


class BooleanParser(_Parser):
    kind = "bool"

    def parse(self, argument):
        if isinstance(argument, str):
            if argument.lower() in ("true", "t", "1", "yes", "y"):
                return True
            if argument.lower() in ("false", "f", "0", "no", "n"):
                return False
            raise ValueError(f"Non-boolean argument to boolean flag: {argument!r}")
        if isinstance(argument, int) and argument in (0, 1):
            return bool(argument)
        raise ValueError(f"Non-boolean argument to boolean flag: {argument!r}")


class EnumParser(_Parser):
    kind = "string enum"

    def __init__(self, enum_values, case_sensitive=True):
        if not enum_values:
            raise ValueError(f"enum_values cannot be empty, found {enum_values!r}")
        self.enum_values, self.case_sensitive = list(enum_values), case_sensitive

    def parse(self, argument):
        for value in self.enum_values:
            if value == argument or not self.case_sensitive and value.upper() == argument.upper():
                return value
        raise ValueError(f"value should be one of <{'|'.join(self.enum_values)}>")


class EnumClassParser(_Parser):
    kind = "enum class"

    def __init__(self, enum_class, case_sensitive=True):
        if not issubclass(enum_class, enum.Enum):
            raise TypeError(f"{enum_class} is not a subclass of Enum.")
        self.enum_class, self.case_sensitive = enum_class, case_sensitive

    def parse(self, argument):
        if isinstance(argument, self.enum_class):
            return argument
        for member in self.enum_class:
            same = member.name == argument if self.case_sensitive else member.name.lower() == argument.lower()
            if same:
                return member
        raise ValueError(f"value should be one of <{'|'.join(m.name for m in self.enum_class)}>")

    def text(self, value):
        return value.name


class ListParser(_Parser):
    kind = "comma separated list of strings"

    def __init__(self, separator=","):
        self.separator = separator

    def parse(self, argument):
        if isinstance(argument, (list, tuple)):
            return list(argument)
        if not argument:
            return []
        parts = argument.split(self.separator) if self.separator else argument.split()
        return [part.strip() for part in parts]

    def text(self, value):
        return (self.separator or " ").join(str(v) for v in value)


class Flag:
    """One flag: its name, default, help text, parser, and value."""

    def __init__(self, parser, serializer, name, default, help_string, short_name=None, boolean=False, multi=False, module=None):
        self.parser, self.serializer, self.name, self.short_name = parser, serializer, name, short_name
        self.help = help_string or "(no help available)"
        self.boolean, self.multi, self.module = boolean, multi, module
        self.present, self.using_default_value, self.allow_override = 0, True, False
        self.default = self._read(default)
        self.value = self.default
        self.validators = []

    def _read(self, value):
        if value is None:
            return None
        if self.multi:
            return [self._one(v) for v in (value if isinstance(value, (list, tuple)) else [value])]
        return self._one(value)

    def _one(self, value):
        try:
            return self.parser.parse(value)
        except (TypeError, ValueError) as e:
            raise IllegalFlagValueError(f"flag --{self.name}={value}: {e}") from None

    def parse(self, text):
        if self.multi:
            value = self._one(text)
            self.value = [value] if not self.present else self.value + [value]
        else:
            self.value = self._one(text)
        self.present += 1
        self.using_default_value = False

    def set(self, value):
        """Sets a value within the flag's bounds, without parsing it.

        Only the command line and the default are parsed.
        """
        if value is not None and getattr(self.parser, "has_bounds", False):
            value = self._read(value)
        self.value = value
        self.using_default_value = False

    def unparse(self):
        self.value, self.present, self.using_default_value = self.default, 0, True

    @property
    def default_as_str(self):
        return None if self.default is None else repr(self._text(self.default))

    def _text(self, value):
        if self.multi:
            return ",".join(self.parser.text(v) for v in value)
        return self.parser.text(value) if not self.boolean else str(value).lower()

    def serialize(self):
        if self.value is None:
            return ""
        if self.boolean:
            return f"--{self.name}" if self.value else f"--no{self.name}"
        if self.multi:
            return "\n".join(f"--{self.name}={self.parser.text(v)}" for v in self.value)
        return f"--{self.name}={self.parser.text(self.value)}"


class FlagValues:
    """All flags. `FLAGS.name` is the value of one."""

    def __init__(self):
        self.__dict__["_flags"] = {}
        self.__dict__["_parsed"] = False
        self.__dict__["_many"] = []

    # Flags by name.

    def __setitem__(self, name, flag):
        for key in filter(None, (name, flag.short_name)):
            old = self._flags.get(key)
            if old is not None and old is not flag and not (old.allow_override or flag.allow_override):
                raise DuplicateFlagError(
                    f"The flag '{key}' is defined twice. First from {old.module}, Second from {flag.module}.  "
                    f"Description from first occurrence: {old.help}"
                )
            self._flags[key] = flag

    def __getitem__(self, name):
        return self._flags[name]

    def __contains__(self, name):
        return name in self._flags

    def __iter__(self):
        return iter(self._flags)

    def __len__(self):
        return len(self._flags)

    def __dir__(self):
        return sorted(self._flags)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        flag = self._flags.get(name)
        if flag is None:
            raise AttributeError(name)
        if not self._parsed:
            self(sys.argv)
        return flag.value

    def __setattr__(self, name, value):
        flag = self._flags.get(name)
        if flag is None:
            raise AttributeError(name)
        flag.set(value)
        self._validate_flag(flag)

    def __delattr__(self, name):
        flag = self._flags.get(name)
        if flag is None:
            raise AttributeError(name)
        for key in [k for k, f in self._flags.items() if f is flag]:
            del self._flags[key]

    def is_parsed(self):
        return self._parsed

    def mark_as_parsed(self):
        self.__dict__["_parsed"] = True

    def unparse_flags(self):
        for flag in self._flags.values():
            flag.unparse()
        self.__dict__["_parsed"] = False

    def set_default(self, name, value):
        flag = self._flags.get(name)
        if flag is None:
            raise UnrecognizedFlagError(name)
        flag.default = flag._read(value)
        if flag.using_default_value:
            flag.value = flag.default

    def get_flag_value(self, name, default):
        if name not in self._flags:
            return default
        value = getattr(self, name)
        return default if value is None else value

    def flag_values_dict(self):
        return {flag.name: flag.value for flag in self._unique()}

    def _unique(self):
        return list(dict.fromkeys(self._flags.values()))

    def flags_into_string(self):
        return "".join(flag.serialize() + "\n" for flag in self._unique() if flag.value is not None)

    # Parsing.

    def __call__(self, argv, known_only=False):
        """Parses a command line; returns the arguments that are no flags, the program's name first."""
        if not argv:
            raise ValueError("argv cannot be an empty list, and must contain the program name as the first element.")
        words = _task_flags.filled(list(argv[1:]), self.__contains__)
        rest = self._parse(_with_flag_files(words), known_only)
        self.mark_as_parsed()
        self.validate_all_flags()
        return [argv[0]] + rest

    def _parse(self, args, known_only):
        rest, unknown = [], []
        at = 0
        while at < len(args):
            arg = args[at]
            at += 1
            if arg == "--":
                rest.extend(args[at:] if not known_only else [arg] + args[at:])
                break
            if not arg.startswith("-") or arg == "-":
                rest.append(arg)
                continue
            name, equals, value = arg.lstrip("-").partition("=")
            flag = self._find(name)
            if flag is None:
                negated = self._find(name[2:]) if name.startswith("no") else None
                if negated is not None and negated.boolean and not equals:
                    negated.parse("false")
                elif name == "undefok":
                    continue
                else:
                    unknown.append((name, arg))
                    rest.append(arg)
                continue
            if not equals:
                if flag.boolean:
                    value = "true"
                elif at < len(args):
                    value = args[at]
                    at += 1
                else:
                    raise Error(f"Missing value for flag {arg}")
            flag.parse(value)
        if unknown and not known_only:
            name, arg = unknown[0]
            if name in ("help", "helpfull", "helpshort", "h", "?"):
                _print_help_and_exit()
            raise UnrecognizedFlagError(name, arg, difflib.get_close_matches(name, list(self._flags), n=3))
        return rest

    def _find(self, name):
        flag = self._flags.get(name)
        if flag is None and "-" in name:
            flag = self._flags.get(name.replace("-", "_"))
        return flag

    # Validation.

    def _validate_flag(self, flag):
        for checker, message in flag.validators:
            try:
                good = checker(flag.value)
            except ValidationError as e:
                raise IllegalFlagValueError(f"flag --{flag.name}={flag.value}: {e}") from None
            if not good:
                raise IllegalFlagValueError(f"flag --{flag.name}={flag.value}: {message}")

    def validate_all_flags(self):
        for flag in self._unique():
            self._validate_flag(flag)
        for names, checker, message in self._many:
            values = {name: self._flags[name].value for name in names}
            if not checker(values):
                text = ", ".join(f"{name}={value}" for name, value in values.items())
                raise IllegalFlagValueError(f"flags {text}: {message}")

    # Help.

    def get_help(self, prefix="", include_special_flags=True):
        del include_special_flags
        modules = {}
        for flag in self._unique():
            modules.setdefault(flag.module, []).append(flag)
        lines = []
        for module, flags in sorted(modules.items()):
            lines.append(f"\n{prefix}{module}:")
            for flag in sorted(flags, key=lambda f: f.name):
                lines.extend(_flag_help(flag, prefix))
        return "\n".join(lines)

    def main_module_help(self):
        return self.get_help()

    def __str__(self):
        return self.get_help()


def _flag_help(flag, prefix):
    short = f"-{flag.short_name}," if flag.short_name else ""
    title = f"{prefix}  {short}--" + (f"[no]{flag.name}" if flag.boolean else f"{flag.name}")
    if isinstance(flag.parser, EnumParser):
        title += f": <{'|'.join(flag.parser.enum_values)}>"
    body = textwrap.wrap(f"{title}: {flag.help}", 80, subsequent_indent=prefix + "    ")
    if flag.multi:
        body.append(f"{prefix}    repeat this option to specify a list of values")
    if flag.default_as_str is not None:
        body.append(f"{prefix}    (default: {flag.default_as_str})")
    if isinstance(flag.parser, _Number):
        body.append(f"{prefix}    ({flag.parser.what})")
    if isinstance(flag.parser, ListParser):
        body.append(f"{prefix}    (a comma separated list)")
    return body


def _with_flag_files(args):
    """The arguments with those of each `--flagfile` in its place."""
    found = []
    for i, arg in enumerate(args):
        name, equals, path = arg.lstrip("-").partition("=")
        if not (arg.startswith("-") and name == "flagfile" and equals):
            if arg == "--":
                return found + args[i:]
            found.append(arg)
            continue
        try:
            with open(os.path.expanduser(path), encoding="utf-8") as f:
                lines = [line.strip() for line in f]
        except OSError as e:
            raise CantOpenFlagFileError(f"ERROR:: Unable to open flagfile: {e}") from None
        found.extend(_with_flag_files([x for x in lines if x and not x.startswith(("#", "//"))]))
    return found


def _print_help_and_exit():
    main = sys.modules.get("__main__")
    doc = (getattr(main, "__doc__", None) or "").strip().replace("%s", sys.argv[0])
    print(doc or f"\nUSAGE: {sys.argv[0]} [flags]\n")
    print("flags:")
    print(FLAGS.get_help())
    sys.exit(1)


FLAGS = FlagValues()


class FlagHolder:
    """What `DEFINE_*` returns: the flag's name, default and value."""

    def __init__(self, flag_values, flag):
        self._flag_values, self._flag, self.name = flag_values, flag, flag.name

    @property
    def value(self):
        return getattr(self._flag_values, self.name)

    @property
    def default(self):
        return self._flag.default

    @property
    def present(self):
        return self._flag.present


def _define(parser, name, default, help_string, flag_values=None, short_name=None, boolean=False, multi=False, required=False, **args):
    if args:
        raise TypeError(f"flag {name!r}: unknown arguments {sorted(args)}")
    values = FLAGS if flag_values is None else flag_values
    values = getattr(values, "_wrapped", values)
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    module = frame.f_globals.get("__name__", "") if frame else ""
    if module == "__main__":
        module = sys.argv[0]
    flag = Flag(parser, None, name, default, help_string, short_name, boolean, multi, module)
    values[name] = flag
    if required:
        mark_flag_as_required(name, values)
    return FlagHolder(values, flag)


def _names(args):
    """TensorFlow 1 called the arguments `flag_name`, `default_value` and `docstring`."""
    new = {"flag_name": "name", "default_value": "default", "docstring": "help"}
    return {new.get(key, key): value for key, value in args.items()}


def _definer(make):
    def outer(*args, **kwargs):
        return make(*args, **_names(kwargs))

    outer.__name__ = make.__name__
    outer.__doc__ = make.__doc__
    return outer


@_definer
def DEFINE_string(name, default=None, help="", flag_values=None, **args):  # pylint: disable=redefined-builtin
    """Defines a flag whose value is a text."""
    return _define(_Parser(), name, default, help, flag_values, **args)


@_definer
def DEFINE_integer(name, default=None, help="", lower_bound=None, upper_bound=None, flag_values=None, **args):  # pylint: disable=redefined-builtin
    """Defines a flag whose value is an integer."""
    return _define(IntegerParser(lower_bound, upper_bound), name, default, help, flag_values, **args)


@_definer
def DEFINE_float(name, default=None, help="", lower_bound=None, upper_bound=None, flag_values=None, **args):  # pylint: disable=redefined-builtin
    """Defines a flag whose value is a number."""
    return _define(FloatParser(lower_bound, upper_bound), name, default, help, flag_values, **args)


@_definer
def DEFINE_boolean(name, default=None, help="", flag_values=None, **args):  # pylint: disable=redefined-builtin
    """Defines a flag that `--name` sets and `--noname` clears."""
    return _define(BooleanParser(), name, default, help, flag_values, boolean=True, **args)


DEFINE_bool = DEFINE_boolean


@_definer
def DEFINE_enum(name, default, enum_values, help="", flag_values=None, case_sensitive=True, **args):  # pylint: disable=redefined-builtin
    """Defines a flag whose value is one of some texts."""
    return _define(EnumParser(enum_values, case_sensitive), name, default, help, flag_values, **args)


@_definer
def DEFINE_enum_class(name, default, enum_class, help="", flag_values=None, case_sensitive=False, **args):  # pylint: disable=redefined-builtin
    return _define(EnumClassParser(enum_class, case_sensitive), name, default, help, flag_values, **args)


@_definer
def DEFINE_list(name, default=None, help="", flag_values=None, **args):  # pylint: disable=redefined-builtin
    """Defines a flag whose value is a list of texts with commas between them."""
    return _define(ListParser(), name, default, help, flag_values, **args)


@_definer
def DEFINE_spaceseplist(name, default=None, help="", comma_compat=False, flag_values=None, **args):  # pylint: disable=redefined-builtin
    del comma_compat
    return _define(ListParser(None), name, default, help, flag_values, **args)


@_definer
def DEFINE_multi_string(name, default=None, help="", flag_values=None, **args):  # pylint: disable=redefined-builtin
    """Defines a flag that may be given more than once."""
    return _define(_Parser(), name, default, help, flag_values, multi=True, **args)


@_definer
def DEFINE_multi_integer(name, default=None, help="", lower_bound=None, upper_bound=None, flag_values=None, **args):  # pylint: disable=redefined-builtin
    return _define(IntegerParser(lower_bound, upper_bound), name, default, help, flag_values, multi=True, **args)


@_definer
def DEFINE_multi_float(name, default=None, help="", lower_bound=None, upper_bound=None, flag_values=None, **args):  # pylint: disable=redefined-builtin
    return _define(FloatParser(lower_bound, upper_bound), name, default, help, flag_values, multi=True, **args)


@_definer
def DEFINE_multi_enum(name, default, enum_values, help="", flag_values=None, case_sensitive=True, **args):  # pylint: disable=redefined-builtin
    return _define(EnumParser(enum_values, case_sensitive), name, default, help, flag_values, multi=True, **args)


def DEFINE_flag(flag, flag_values=None, module_name=None, required=False):
    values = FLAGS if flag_values is None else flag_values
    flag.module = module_name or flag.module
    values[flag.name] = flag
    if required:
        mark_flag_as_required(flag.name, values)
    return FlagHolder(values, flag)


def DEFINE(parser, name, default, help, flag_values=None, serializer=None, **args):  # pylint: disable=redefined-builtin
    del serializer
    return _define(parser, name, default, help, flag_values, **args)


def DEFINE_alias(name, original_name, flag_values=None, module_name=None):
    """Makes `name` another name of a flag."""
    del module_name
    values = FLAGS if flag_values is None else flag_values
    if original_name not in values:
        raise UnrecognizedFlagError(original_name)
    values._flags[name] = values[original_name]


def register_validator(flag_name, checker, message="Flag validation failed", flag_values=None):
    values = FLAGS if flag_values is None else flag_values
    values[flag_name].validators.append((checker, message))


def validator(flag_name, message="Flag validation failed", flag_values=None):
    def decorate(function):
        register_validator(flag_name, function, message, flag_values)
        return function

    return decorate


def register_multi_flags_validator(flag_names, multi_flags_checker, message="Flags validation failed", flag_values=None):
    values = FLAGS if flag_values is None else flag_values
    values._many.append((list(flag_names), multi_flags_checker, message))


def multi_flags_validator(flag_names, message="Flag validation failed", flag_values=None):
    def decorate(function):
        register_multi_flags_validator(flag_names, function, message, flag_values)
        return function

    return decorate


def mark_flag_as_required(flag_name, flag_values=None):
    register_validator(
        flag_name, lambda value: value is not None, f"Flag --{flag_name} must have a value other than None.", flag_values
    )


def mark_flags_as_required(flag_names, flag_values=None):
    for name in flag_names:
        mark_flag_as_required(name, flag_values)


def mark_flags_as_mutual_exclusive(flag_names, required=False, flag_values=None):
    def check(values):
        given = sum(value is not None for value in values.values())
        return given == 1 or given == 0 and not required

    text = f"{'Exactly' if required else 'At most'} one of ({', '.join(flag_names)}) must have a value other than None."
    register_multi_flags_validator(flag_names, check, text, flag_values)


def mark_bool_flags_as_mutual_exclusive(flag_names, required=False, flag_values=None):
    values = FLAGS if flag_values is None else flag_values
    for name in flag_names:
        if not values[name].boolean:
            raise ValidationError(f"Flag --{name} is not Boolean, which is required for flags used in mark_bool_flags_as_mutual_exclusive.")

    def check(values):
        count = sum(bool(value) for value in values.values())
        return count == 1 or count == 0 and not required

    register_multi_flags_validator(
        flag_names, check, f"{'Exactly' if required else 'At most'} one of ({', '.join(flag_names)}) must be True.", flag_values)


def set_default(flag_holder, value):
    """Changes the default of a flag that was defined elsewhere."""
    flag = flag_holder._flag if hasattr(flag_holder, "_flag") else FLAGS[flag_holder.name]
    flag.default = flag._read(value)
    if flag.using_default_value:
        flag.value = flag.default


def disclaim_key_flags():
    """Flags are not grouped by module."""


def adopt_module_key_flags(module, flag_values=None):
    del module, flag_values


def declare_key_flag(flag_name, flag_values=None):
    values = FLAGS if flag_values is None else flag_values
    if flag_name not in values:
        raise UnrecognizedFlagError(flag_name)


def flag_dict_to_args(flag_map, multi_flags=None):
    """The command-line arguments for a dict of flags."""
    for key, value in flag_map.items():
        if value is None:
            yield f"--{key}"
        elif isinstance(value, bool):
            yield f"--{key}" if value else f"--no{key}"
        elif isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
            yield f"--{key}={value}"
        elif multi_flags and key in multi_flags:
            for item in value:
                yield f"--{key}={item}"
        else:
            yield f"--{key}={','.join(str(item) for item in value)}"


def doc_to_help(doc):
    return textwrap.dedent(doc.strip())


def get_help_width():
    return 80


def text_wrap(text, length=None, indent="", firstline_indent=None):
    first = indent if firstline_indent is None else firstline_indent
    return "\n".join(textwrap.wrap(text, length or 80, initial_indent=first, subsequent_indent=indent))
