"""Amounts of memory as people write them."""

import pytest

from tabulary.core.byte_size import byte_size
from tabulary.errors import ServiceError


def size(given):
    return byte_size(given, name="memory", error=ServiceError)


def test_memory_is_read_from_numbers_and_from_text():
    assert size("1 GiB") == size("1024MiB") == size(2**30)
    assert size(" 2 TiB ") == 2**41


@pytest.mark.parametrize("wrong", ["64", "0 B", "many", "1e3 B", "9" * 40 + " B", 0, -1, True, 1.5, None])
def test_what_is_no_amount_of_memory_is_refused_by_name(wrong):
    with pytest.raises(ServiceError, match="memory is a number of bytes, or text such as '64 MiB'"):
        size(wrong)
