"""CRC-32C (Castagnoli), the checksum of record files, and TensorFlow's mask for it."""

_POLYNOMIAL = 0x82F63B78


def _make_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (_POLYNOMIAL if n & 1 else 0)
        table.append(n)
    return table


_TABLE = _make_table()


def crc32c(data, crc=0):
    """The checksum of bytes, or of bytes that follow those of `crc`."""
    crc ^= 0xFFFFFFFF
    table = _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def masked_crc32c(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF
