"""Whether what listens in this container is well: `python -m deploy.health URL...`.

Ends with 0 where each page that listens answers 200. One image has several commands, so
what does not listen is no concern of it; with `--all` it is.
"""

import argparse
import http.client
import sys
from collections.abc import Iterable
from urllib.parse import urlsplit

ANSWER_S = 2.0
"""How long a page may take."""


def faults(urls: Iterable[str], *, needs_all: bool = False) -> list[str]:
    """What is wrong, in words; nothing where all is well.

    Parameters
    ----------
    urls
        `http://HOST:PORT/PATH` of pages that say how something fares.
    needs_all
        Whether each of them must listen, and not only one.

    Examples
    --------
    >>> faults(["http://127.0.0.1:1/livez"])
    ['a page must listen; none does']
    """
    found, n_listen = [], 0
    for url in urls:
        try:
            said = _fault(url)
        except ConnectionRefusedError:
            said = f"{url} does not listen" if needs_all else ""
        else:
            n_listen += 1
        found += [said] if said else []
    return found if n_listen or found else ["a page must listen; none does"]


def _fault(url: str) -> str:
    """What a page says is wrong; "" where it answers 200.

    Raises
    ------
    ConnectionRefusedError
        Where nobody listens.
    """
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.netloc, timeout=ANSWER_S)
    try:
        connection.request("GET", place.path)
        answer = connection.getresponse()
        said = answer.read(1_000).decode("utf-8", "replace").strip()
    except ConnectionRefusedError:
        raise
    except (OSError, http.client.HTTPException) as error:
        return f"{url} does not answer: {str(error) or type(error).__name__}"
    finally:
        connection.close()
    return "" if answer.status == 200 else f"{url} says {answer.status}: {said}"


def main() -> int:
    """Look once; 1 where something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m deploy.health")
    parser.add_argument("urls", nargs="+", metavar="URL")
    parser.add_argument("--all", action="store_true", help="each of them must listen")
    given = parser.parse_args()
    found = faults(given.urls, needs_all=given.all)
    sys.stderr.writelines(f"{one}\n" for one in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
