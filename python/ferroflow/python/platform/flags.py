"""`tf.flags` and `tf.app.flags`: command-line flags."""

import sys


class Error(Exception):
    pass


class DuplicateFlagError(Error):
    pass


class IllegalFlagValueError(Error):
    pass


class UnparsedFlagAccessError(Error):
    pass


class UnrecognizedFlagError(Error):
    pass


class _Flag:
    def __init__(self, name, default, help_text, parse, short_name=None, is_bool=False, is_multi=False):
        self.name, self.default, self.help = name, default, help_text
        self.parse, self.short_name, self.is_bool, self.is_multi = parse, short_name, is_bool, is_multi
        self.value, self.present = default, 0
        self.validators = []

    @property
    def using_default_value(self):
        return not self.present


class FlagValues:
    """The flags of the program and their values."""

    def __init__(self):
        self.__dict__["_flags"] = {}
        self.__dict__["_parsed"] = False
        self.__dict__["_required"] = set()

    def _define(self, flag):
        if flag.name in self._flags and self._flags[flag.name].default != flag.default:
            raise DuplicateFlagError(f"The flag '{flag.name}' is defined twice.")
        self._flags[flag.name] = flag

    def __call__(self, argv, known_only=False):
        """Reads the flags of a command line; returns the words that are none."""
        rest, words = list(argv[:1]), list(argv[1:])
        while words:
            word = words.pop(0)
            if word == "--":
                rest += words
                break
            if not word.startswith("-") or word == "-" or _is_number(word):
                rest.append(word)
                continue
            name, has_value, value = word.lstrip("-").partition("=")
            flag = self._find(name)
            if flag is None and name.startswith("no") and self._find(name[2:]) is not None and self._find(name[2:]).is_bool:
                flag, has_value, value = self._find(name[2:]), "=", "false"
            if flag is None:
                if name in ("help", "helpfull", "helpshort"):
                    print(self.main_module_help())
                    sys.exit(0)
                if known_only:
                    rest.append(word)
                    continue
                raise UnrecognizedFlagError(f"Unknown command line flag '{name}'")
            if not has_value:
                if flag.is_bool:
                    # `--flag true` is a flag and a word, except for the words of a truth value.
                    value = words.pop(0) if words and words[0].lower() in ("true", "false") else "true"
                elif words:
                    value = words.pop(0)
                else:
                    raise Error(f"Missing value for flag {word}")
            self._assign(flag, value)
        self.__dict__["_parsed"] = True
        for name in self._required:
            if self._flags[name].value is None:
                raise IllegalFlagValueError(f"flag --{name}=None: Flag --{name} must have a value other than None.")
        for flag in self._flags.values():
            for check, message in flag.validators:
                if not check(flag.value):
                    raise IllegalFlagValueError(f"flag --{flag.name}={flag.value}: {message}")
        return rest

    def _assign(self, flag, text):
        try:
            value = flag.parse(text)
        except (TypeError, ValueError) as e:
            raise IllegalFlagValueError(f"flag --{flag.name}={text}: {e}") from None
        if flag.is_multi:
            flag.value = (flag.value if flag.present else []) + [value]
        else:
            flag.value = value
        flag.present += 1

    def _find(self, name):
        found = self._flags.get(name) or self._flags.get(name.replace("-", "_"))
        if found is None:
            found = next((f for f in self._flags.values() if f.short_name == name), None)
        return found

    def _parse_args(self, args=None, known_only=True):
        return self([sys.argv[0]] + list(sys.argv[1:] if args is None else args), known_only)

    def mark_as_parsed(self):
        self.__dict__["_parsed"] = True

    def is_parsed(self):
        return self._parsed

    def unparse_flags(self):
        self.__dict__["_parsed"] = False

    def __getattr__(self, name):
        flags = self.__dict__["_flags"]
        if name not in flags:
            raise AttributeError(name)
        if not self.__dict__["_parsed"]:
            # Version 1 reads the command line when the first flag is used.
            self._parse_args()
        return flags[name].value

    def __setattr__(self, name, value):
        if name not in self._flags:
            raise AttributeError(name)
        self._flags[name].value = value
        self._flags[name].present += 1

    def __delattr__(self, name):
        del self._flags[name]

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

    @property
    def __flags(self):
        return self._flags

    def flag_values_dict(self):
        return {name: flag.value for name, flag in self._flags.items()}

    def set_default(self, name, value):
        flag = self._flags[name]
        flag.default = value
        if not flag.present:
            flag.value = value

    def main_module_help(self):
        lines = []
        for name in sorted(self._flags):
            flag = self._flags[name]
            start = f"--[no]{name}" if flag.is_bool else f"--{name}"
            lines.append(f"  {start}: {flag.help or ''}\n    (default: {flag.default!r})")
        return "\n".join(lines)

    get_help = main_module_help


FLAGS = FlagValues()
_FlagValues = FlagValues


def _is_number(word):
    try:
        float(word)
        return True
    except ValueError:
        return False


def _bool(text):
    if isinstance(text, bool):
        return text
    lower = str(text).lower()
    if lower in ("true", "t", "1", "yes", "y"):
        return True
    if lower in ("false", "f", "0", "no", "n"):
        return False
    raise ValueError(f"Non-boolean argument to boolean flag: {text!r}")


def _default(value, parse):
    return None if value is None else parse(value)


def DEFINE_string(name, default_value=None, help="", flag_values=FLAGS, required=False, short_name=None, **kw):  # pylint: disable=redefined-builtin
    default_value = kw.get("default", default_value)
    flag_values._define(_Flag(name, default_value if default_value is None else str(default_value), kw.get("docstring", help), str, short_name))
    _require(name, required, flag_values)


def DEFINE_integer(name, default_value=None, help="", lower_bound=None, upper_bound=None, flag_values=FLAGS, required=False, short_name=None, **kw):  # pylint: disable=redefined-builtin
    def parse(text):
        value = int(text, 0) if isinstance(text, str) else int(text)
        return _bounded(value, lower_bound, upper_bound)

    default_value = kw.get("default", default_value)
    flag_values._define(_Flag(name, _default(default_value, parse), kw.get("docstring", help), parse, short_name))
    _require(name, required, flag_values)


def DEFINE_float(name, default_value=None, help="", lower_bound=None, upper_bound=None, flag_values=FLAGS, required=False, short_name=None, **kw):  # pylint: disable=redefined-builtin
    def parse(text):
        return _bounded(float(text), lower_bound, upper_bound)

    default_value = kw.get("default", default_value)
    flag_values._define(_Flag(name, _default(default_value, parse), kw.get("docstring", help), parse, short_name))
    _require(name, required, flag_values)


def DEFINE_boolean(name, default_value=None, help="", flag_values=FLAGS, required=False, short_name=None, **kw):  # pylint: disable=redefined-builtin
    default_value = kw.get("default", default_value)
    flag_values._define(_Flag(name, _default(default_value, _bool), kw.get("docstring", help), _bool, short_name, is_bool=True))
    _require(name, required, flag_values)


DEFINE_bool = DEFINE_boolean


def DEFINE_enum(name, default_value, enum_values, help="", flag_values=FLAGS, required=False, short_name=None, **kw):  # pylint: disable=redefined-builtin
    def parse(text):
        if text not in enum_values:
            raise ValueError(f"value should be one of <{'|'.join(enum_values)}>")
        return text

    default_value = kw.get("default", default_value)
    flag_values._define(_Flag(name, _default(default_value, parse), kw.get("docstring", help), parse, short_name))
    _require(name, required, flag_values)


def DEFINE_list(name, default_value, help="", flag_values=FLAGS, required=False, short_name=None, **kw):  # pylint: disable=redefined-builtin
    def parse(text):
        if isinstance(text, (list, tuple)):
            return list(text)
        return [item.strip() for item in text.split(",")] if text else []

    default_value = kw.get("default", default_value)
    flag_values._define(_Flag(name, _default(default_value, parse), kw.get("docstring", help), parse, short_name))
    _require(name, required, flag_values)


DEFINE_spaceseplist = DEFINE_list


def DEFINE_multi_string(name, default_value, help="", flag_values=FLAGS, required=False, short_name=None, **kw):  # pylint: disable=redefined-builtin
    default_value = [default_value] if isinstance(default_value, str) else default_value
    flag_values._define(_Flag(name, default_value, kw.get("docstring", help), str, short_name, is_multi=True))
    _require(name, required, flag_values)


def DEFINE_multi_integer(name, default_value, help="", flag_values=FLAGS, required=False, short_name=None, **kw):  # pylint: disable=redefined-builtin
    default_value = [default_value] if isinstance(default_value, int) else default_value
    flag_values._define(_Flag(name, default_value, kw.get("docstring", help), int, short_name, is_multi=True))
    _require(name, required, flag_values)


def _bounded(value, low, high):
    if low is not None and value < low or high is not None and value > high:
        raise ValueError(f"{value} is not within [{low}, {high}]")
    return value


def _require(name, required, flag_values):
    if required:
        flag_values._required.add(name)


def mark_flag_as_required(flag_name, flag_values=FLAGS):
    flag_values._required.add(flag_name)


def mark_flags_as_required(flag_names, flag_values=FLAGS):
    flag_values._required.update(flag_names)


def register_validator(flag_name, checker, message="Flag validation failed", flag_values=FLAGS):
    flag_values[flag_name].validators.append((checker, message))


def validator(flag_name, message="Flag validation failed", flag_values=FLAGS):
    def decorate(checker):
        register_validator(flag_name, checker, message, flag_values)
        return checker

    return decorate


def declare_key_flag(flag_name, flag_values=FLAGS):
    del flag_name, flag_values


def adopt_module_key_flags(module, flag_values=FLAGS):
    del module, flag_values


def text_wrap(text, length=None, indent="", firstline_indent=None):
    import textwrap

    return textwrap.fill(text, length or 80, subsequent_indent=indent, initial_indent=firstline_indent or indent)
