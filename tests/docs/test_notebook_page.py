"""A notebook on the site has its words, its code, and what that printed."""

import json

from docs.notebook_page import page_of


def test_cells_come_in_their_order_with_what_they_printed() -> None:
    """Of a cell that printed nothing there is its code alone."""
    cells = [
        {"cell_type": "markdown", "source": ["# Clicks\n", "\n", "Some."]},
        {
            "cell_type": "code",
            "source": ["print(1)\n", "2"],
            "outputs": [
                {"output_type": "stream", "text": ["1\n"]},
                {
                    "output_type": "execute_result",
                    "data": {"text/plain": ["2"], "text/html": ["<b>2</b>"]},
                },
            ],
        },
        {"cell_type": "code", "source": ["x = 3"], "outputs": []},
    ]
    assert page_of(json.dumps({"cells": cells})).split("```") == [
        "# Clicks\n\nSome.\n\n",
        "python\nprint(1)\n2\n",
        "\n\n",
        "text\n1\n",
        "\n\n",
        "text\n2\n",
        "\n\n",
        "python\nx = 3\n",
        "\n",
    ]
