"""Draws boxes, arrows and text as SVG, in colours that follow the reader's light or dark theme.

Fails when two texts overlap or a text leaves the picture, so that a diagram stays readable when it changes.
"""

from html import escape

# Name of a colour: (light, dark). A picture has its own background, so that any page can show it.
COLOURS = {
    "page": ("#ffffff", "#1b1f27"),
    "edge": ("#d4d9e1", "#3a414e"),
    "ink": ("#1c2430", "#e7ebf2"),
    "soft": ("#5b6675", "#a4afc0"),
    "client": ("#e9edf3", "#2c3340"),
    "worker": ("#dbe8fc", "#1e3a63"),
    "ps": ("#fde6cf", "#5a3a16"),
    "chief": ("#e6defb", "#40316b"),
    "good": ("#d6f0dd", "#1d4a2c"),
    "bad": ("#fbdada", "#612525"),
    "s1": ("#e4e9f0", "#2c3340"),
    "s2": ("#c5d9f8", "#25466f"),
    "s3": ("#93b9f0", "#2f62a8"),
    "s4": ("#4f86d9", "#5b93e6"),
    "data": ("#1f6fd0", "#6fb1ff"),
    "control": ("#6b7686", "#98a3b5"),
    "mark": ("#d1600a", "#ffa14d"),
}


def _width(text, size):
    """An estimate that is rather too wide than too narrow."""
    wide = sum(1.0 if ord(c) > 0x2E00 else 0.62 if c.isupper() or c in "mwMW@→↔…" else 0.33 if c in "iljt.,:;'|! " else 0.55
               for c in text)
    return wide * size


class Picture:
    def __init__(self, width, height, title):
        self.size = width, height
        self.title = title
        self.parts = []
        self.texts = []  # (x0, y0, x1, y1, text)
        self.add('<rect class="page" x="0.5" y="0.5" width="%d" height="%d" rx="10"/>' % (width - 1, height - 1))

    def add(self, part):
        self.parts.append(part)

    # ---- shapes

    def box(self, x, y, w, h, fill, head=None, lines=(), size=14):
        """A rounded box; its head and lines are centred in it."""
        self.add('<rect class="%s box" x="%g" y="%g" width="%g" height="%g" rx="7"/>' % (fill, x, y, w, h))
        rows = ([(head, size, True)] if head else []) + [(line, size - 2, False) for line in lines]
        total = sum(s * 1.4 for _, s, _ in rows)
        at = y + (h - total) / 2
        for text, s, bold in rows:
            at += s * 1.4
            self.text(x + w / 2, at - s * 0.4, text, s, bold=bold, within=w - 8)

    def cell(self, x, y, w, h, fill, text, marked=False):
        extra = " marked" if marked else ""
        self.add('<rect class="%s box%s" x="%g" y="%g" width="%g" height="%g" rx="3"/>' % (fill, extra, x, y, w, h))
        self.text(x + w / 2, y + h / 2 + 4.5, text, 13, bold=marked, ink="onstrong" if fill == "s4" else "ink")

    def frame(self, x, y, w, h, head, dashed=True):
        """A thin frame around other things, with its name at the top left."""
        style = ' stroke-dasharray="5 4"' if dashed else ""
        self.add('<rect class="frame" x="%g" y="%g" width="%g" height="%g" rx="9"%s/>' % (x, y, w, h, style))
        self.text(x + 10, y + 19, head, 12, anchor="start", ink="soft")

    def line(self, points, kind="control", arrow=True, both=False, dashed=False):
        path = "M" + " L".join("%g %g" % p for p in points)
        marks = ""
        if arrow:
            marks += ' marker-end="url(#%s)"' % kind
        if both:
            marks += ' marker-start="url(#%s)"' % kind
        if dashed:
            marks += ' stroke-dasharray="5 4"'
        self.add('<path class="%s line" d="%s"%s/>' % (kind, path, marks))

    def arrow(self, x1, y1, x2, y2, label=None, kind="control", both=False, dashed=False, dx=0, dy=-7, anchor="middle",
              size=12):
        self.line([(x1, y1), (x2, y2)], kind, both=both, dashed=dashed)
        if label:
            self.text((x1 + x2) / 2 + dx, (y1 + y2) / 2 + dy, label, size, anchor=anchor, ink="soft")

    def curve(self, path, kind="data"):
        self.add('<path class="%s line" d="%s" marker-end="url(#%s)"/>' % (kind, path, kind))

    # ---- text

    def text(self, x, y, text, size=13, bold=False, anchor="middle", ink="ink", within=None):
        width = _width(text, size)
        if within is not None and width > within:
            raise ValueError("%s: %r is %d wide in a box of %d" % (self.title, text, width, within))
        left = {"start": x, "middle": x - width / 2, "end": x - width}[anchor]
        area = (left, y - size * 0.8, left + width, y + size * 0.2, text)
        if left < 4 or area[2] > self.size[0] - 4 or area[1] < 0 or area[3] > self.size[1]:
            raise ValueError("%s: %r leaves the picture" % (self.title, text))
        for other in self.texts:
            if area[0] < other[2] and other[0] < area[2] and area[1] < other[3] and other[1] < area[3]:
                raise ValueError("%s: %r overlaps %r" % (self.title, text, other[4]))
        self.texts.append(area)
        weight = ' font-weight="600"' if bold else ""
        self.add('<text class="%s" x="%g" y="%g" font-size="%g" text-anchor="%s"%s>%s</text>'
                 % (ink, x, y, size, anchor, weight, escape(text)))

    def svg(self):
        def rules(i):
            fills = ["page", "client", "worker", "ps", "chief", "good", "bad", "s1", "s2", "s3", "s4"]
            out = ["rect.%s{fill:%s}" % (n, COLOURS[n][i]) for n in fills]
            out += ["rect.page,rect.box,rect.frame{stroke:%s}" % COLOURS["edge"][i]]
            out += ["rect.marked{stroke:%s}" % COLOURS["mark"][i]]
            out += ["text.%s{fill:%s}" % (n, COLOURS[n][i]) for n in ("ink", "soft", "data", "mark")]
            out += ["text.onstrong{fill:#ffffff}"]
            out += ["path.%s.line{stroke:%s}" % (n, COLOURS[n][i]) for n in ("data", "control", "mark", "edge")]
            out += ["path.tip-%s{fill:%s}" % (n, COLOURS[n][i]) for n in ("data", "control", "mark")]
            return "".join(out)

        width, height = self.size
        tips = "".join(
            '<marker id="%s" viewBox="0 0 10 10" refX="8.5" refY="5" markerWidth="7" markerHeight="7" '
            'orient="auto-start-reverse"><path class="tip-%s" d="M0 0.8 L9.5 5 L0 9.2 z"/></marker>' % (n, n)
            for n in ("data", "control", "mark"))
        style = ("text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','Noto Sans CJK SC',sans-serif}"
                 "rect.box{stroke-width:1}rect.frame{fill:none;stroke-width:1.2}rect.marked{stroke-width:2.4}"
                 "path.line{fill:none;stroke-width:1.7}"
                 + rules(0) + "@media(prefers-color-scheme:dark){" + rules(1) + "}")
        return ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" '
                'aria-label="%s">\n<title>%s</title>\n<style>%s</style>\n<defs>%s</defs>\n%s\n</svg>\n'
                % (width, height, width, height, escape(self.title, True), escape(self.title), style, tips,
                   "\n".join(self.parts)))
