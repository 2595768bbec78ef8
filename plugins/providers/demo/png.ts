// Encodes a scene as PNG. Rows are rendered in bands, so that a large image does not block other
// requests.
import { setImmediate as turn } from "node:timers/promises";
import { promisify } from "node:util";
import { crc32, deflate } from "node:zlib";
import type { Scene } from "./landscape.ts";

const compress = promisify(deflate);
const BAND = 64;

export interface Canvas {
  width: number;
  height: number;
  /** Side length of a single-color square in pixels. 1 is the finest. */
  cell: number;
  transparent: boolean;
}

export async function png(
  scene: Scene,
  { width, height, cell, transparent }: Canvas,
): Promise<Buffer> {
  const depth = transparent ? 4 : 3;
  const row = 1 + width * depth;
  const pixels = Buffer.alloc(row * height);
  const columns = Array.from({ length: Math.ceil(width / cell) }, (_, i) =>
    scene((i * cell + 0.5) / width),
  );
  for (let y = 0; y < height; y += cell) {
    if (y % BAND < cell) await turn();
    const from = y * row;
    for (let x = 0; x < width; x += cell) {
      const { colour, sky } = columns[x / cell]!((y + 0.5) / height);
      for (let k = x; k < Math.min(x + cell, width); k++) {
        const at = from + 1 + k * depth;
        for (let c = 0; c < 3; c++) pixels[at + c] = Math.round(colour[c]!);
        if (transparent) pixels[at + 3] = sky ? 0 : 255;
      }
    }
    for (let k = y + 1; k < Math.min(y + cell, height); k++)
      pixels.copy(pixels, k * row, from, from + row);
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  // 8 bits per channel, RGB or RGBA.
  head.set([8, transparent ? 6 : 2, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk("IHDR", head),
    chunk("IDAT", await compress(pixels)),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const whole = Buffer.alloc(named.length + 8);
  whole.writeUInt32BE(data.length, 0);
  named.copy(whole, 4);
  whole.writeUInt32BE(crc32(named), named.length + 4);
  return whole;
}
