"""Makes a stack of noisy pictures of an ellipse, as a microscope shows particles, and the table that RELION reads."""

import random
import struct

SIDE, COUNT = 32, 20
FIELDS = ["OpticsGroup", "OpticsGroupName", "Voltage", "SphericalAberration", "AmplitudeContrast", "ImagePixelSize", "ImageSize",
          "ImageDimensionality"]

random.seed(1)
pictures = b""
for _ in range(COUNT):
    x0, y0 = (SIDE / 2 + random.uniform(-1, 1) for _ in "xy")
    picture = [((x - x0) ** 2 + 2 * (y - y0) ** 2 < 50) + random.gauss(0, 0.5) for y in range(SIDE) for x in range(SIDE)]
    mean = sum(picture) / len(picture)
    deviation = (sum((value - mean) ** 2 for value in picture) / len(picture)) ** 0.5
    pictures += struct.pack(f"<{SIDE * SIDE}f", *((value - mean) / deviation for value in picture))
header = bytearray(1024)
struct.pack_into("<10i", header, 0, SIDE, SIDE, COUNT, 2, 0, 0, 0, SIDE, SIDE, COUNT)
struct.pack_into("<6f3i3f", header, 40, SIDE * 2.0, SIDE * 2.0, COUNT * 2.0, 90, 90, 90, 1, 2, 3, -3, 3, 0)
header[208:216] = b"MAP \x44\x44\0\0"
with open("particles.mrcs", "wb") as file:
    file.write(bytes(header) + pictures)
with open("particles.star", "w") as file:
    file.write("\ndata_optics\n\nloop_\n" + "".join(f"_rln{name} #{number}\n" for number, name in enumerate(FIELDS, 1)))
    file.write("1 group 300 2.7 0.1 2.0 32 2\n\ndata_particles\n\nloop_\n_rlnImageName #1\n_rlnOpticsGroup #2\n_rlnMicrographName #3\n")
    file.write("".join(f"{number:06d}@particles.mrcs 1 micrograph\n" for number in range(1, COUNT + 1)))
