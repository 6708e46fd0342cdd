"""What the tests of the Python package share."""
import pytest

import monolayer

SENTENCES = [["May", "sails", "in", "May", "."], ["In", "May", "it", "rains", "."], ["May", "I", "go", "?"]]
LABELS = [["PER", "O", "O", "DATE", "O"], ["O", "DATE", "O", "O", "O"], ["O", "O", "O", "O"]]


@pytest.fixture(scope="session")
def model():
    return monolayer.memorize(SENTENCES, LABELS)
