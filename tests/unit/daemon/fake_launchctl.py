"""A launchctl that keeps to launchctl(1) as far as an install needs it. Its state lies beside it.

Exit codes: 113 for a service it doesn't know, 5 for one that is loaded already; `VERB.codes` holds codes to
be given before that, one a call.
"""

import sys
from pathlib import Path

place = Path(sys.argv[0]).parent
verb, *words = sys.argv[1:]
loaded = place / "loaded"
with (place / "calls").open("a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\n")


def end(code: int) -> None:
    if code:
        sys.stderr.write(f"{verb.capitalize()} failed: {code}: Input/output error\n")
    sys.exit(code)


codes = place / f"{verb}.codes"
if codes.exists():
    first, *rest = codes.read_text().splitlines()
    if rest:
        codes.write_text("\n".join(rest))
    else:
        codes.unlink()
    end(int(first))

lingers = place / "lingers"
known = words[-1].count("/") == 1 or loaded.exists()
if verb == "bootstrap":
    if loaded.exists():
        end(5)
    loaded.write_text(words[1])
elif verb == "bootout":
    if not loaded.exists():
        end(113)
    if not lingers.exists():
        loaded.unlink()
elif verb == "print":
    if loaded.exists() and lingers.exists() and words[0].count("/") == 2:
        left = int(lingers.read_text()) - 1
        if left < 0:
            lingers.unlink()
            loaded.unlink()
            known = False
        else:
            lingers.write_text(str(left))
    end(0 if known else 113)
elif verb in ("kickstart", "kill"):
    end(0 if known else 113)
