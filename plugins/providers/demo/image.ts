import { fail, type Call, type ImageRequest, type Media, type ModelEvent } from "tollgate/plugin";
import { requireSupported, sizeOf } from "tollgate/protocols/images";
import { digestOf, createSeededRandom } from "./random-text.ts";
import { setImmediate as turn } from "node:timers/promises";
import { promisify } from "node:util";
import { crc32, deflate } from "node:zlib";

/** Returns the digest of an input image, so that different input gives a different image. */
function bytesOf(media: Media): string {
  if ("url" in media || "fileId" in media)
    return fail("unsupported", "demo/image is offline. Send the image data instead of a URL.", {
      param: "image",
    });
  return digestOf("base64" in media ? media.base64 : media.bytes.toString("base64"));
}

const USUAL = { width: 512, height: 512 };
/** Cell sizes of partial images, from coarse to fine. */
const PARTIAL = [64, 32, 16];
const CELLS: Readonly<Record<string, number>> = { low: 8, medium: 2, standard: 2, auto: 2 };

/** Returns images. The same prompt and seed give the same image, bit for bit. */
export async function* image(r: ImageRequest, call: Call): AsyncGenerator<ModelEvent> {
  if (call.model !== "image")
    fail("not_found", `Model demo/${call.model} does not support images. Use demo/image.`, {
      code: "model_not_found",
      param: "model",
    });
  const seen = [...r.inputImages, ...(r.mask ? [r.mask] : [])].map(bytesOf);
  requireSupported({ n: r.n, size: r.size, quality: r.quality, format: r.format }, call.info);
  for (const field of Object.keys((r.ext["images"] ?? {}) as object))
    call.reportLoss(field, "dropped");
  const size = sizeOf(r.size) ?? USUAL;
  const transparent = r.background === "transparent";
  yield { type: "start", id: `demo-${digestOf(call.attemptId).slice(0, 24)}`, model: call.model };
  for (let index = 0; index < r.n; index++) {
    const of = createScene(size.width / size.height, r.seed ?? null, r.prompt, index, ...seen);
    const drawn = async (cell: number) => {
      if (call.signal.aborted) fail("canceled", "The request was canceled.");
      return { bytes: await png(of, { ...size, cell, transparent }), mime: "image/png" };
    };
    yield { type: "open", index, block: { type: "image" } };
    if (r.stream)
      for (const cell of PARTIAL.slice(0, r.partialImages ?? 0))
        yield { type: "media", index, media: await drawn(cell), partial: true };
    yield { type: "media", index, media: await drawn(CELLS[r.quality ?? "auto"] ?? 1) };
    yield { type: "close", index };
  }
  yield {
    type: "usage",
    usage: { images: r.n, megapixels: (r.n * size.width * size.height) / 1e6 },
  };
  yield { type: "finish", reason: "stop" };
}

// Generates a landscape from a seed: sky, sun, and hills in layers. Every pixel depends only on its
// position, so a coarse image shows the same landscape with larger cells.

type Colour = readonly [red: number, green: number, blue: number];
/**
 * A function from a column to a function from a row to a color. x and y are from 0 to 1, and y
 * points down. `sky` pixels may be transparent.
 */
type Scene = (x: number) => (y: number) => { colour: Colour; sky: boolean };

const LAYERS = 4;
const SUN: Colour = [255, 244, 214];

/** Creates a scene. `aspect`: width divided by height, so that the sun is round. */
function createScene(aspect: number, ...seed: readonly unknown[]): Scene {
  const next = createSeededRandom("scene", ...seed);
  const hue = next();
  const high = colour(hue, 0.55, 0.55);
  const low = colour(hue + 0.08, 0.7, 0.85);
  const sun = { x: 0.15 + 0.7 * next(), y: 0.15 + 0.3 * next(), r: 0.05 + 0.06 * next() };
  const hills = Array.from({ length: LAYERS }, (_, i) => ({
    base: 0.5 + 0.13 * i,
    colour: colour(hue + 0.4 + 0.05 * i, 0.45, 0.5 - 0.09 * i),
    waves: Array.from({ length: 3 }, (_, k) => ({
      size: (0.08 - 0.012 * i) / (k + 1),
      count: (2 + 3 * k) * (0.7 + 0.6 * next()),
      shift: next() * 2 * Math.PI,
    })),
  }));
  const nearest = hills.toReversed();
  return (x) => {
    const edges = nearest.map(({ base, waves }) =>
      waves.reduce(
        (at, { size, count, shift }) => at - size * Math.sin(2 * Math.PI * count * x + shift),
        base,
      ),
    );
    return (y) => {
      const hill = nearest[edges.findIndex((edge) => y > edge)];
      if (hill) return { colour: mix(hill.colour, low, 0.25 * (1 - y)), sky: false };
      const far = Math.hypot((x - sun.x) * aspect, y - sun.y) / sun.r;
      if (far < 1) return { colour: SUN, sky: false };
      const glow = Math.max(0, 1 - (far - 1) / 3) * 0.5;
      return { colour: mix(mix(high, low, y / 0.7), SUN, glow), sky: true };
    };
  };
}

const mix = (a: Colour, b: Colour, share: number): Colour => {
  const t = Math.min(1, Math.max(0, share));
  return [a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t, a[2] + (b[2] - a[2]) * t];
};

/** Converts hue, saturation, and lightness from 0 to 1. The hue wraps around. */
function colour(hue: number, saturation: number, lightness: number): Colour {
  const a = saturation * Math.min(lightness, 1 - lightness);
  const channel = (n: number): number => {
    const k = (n + (hue - Math.floor(hue)) * 12) % 12;
    return 255 * (lightness - a * Math.max(-1, Math.min(k - 3, 9 - k, 1)));
  };
  return [channel(0), channel(8), channel(4)];
}

// Encodes a scene as PNG. Rows are rendered in bands, so that a large image does not block other
// requests.

const compress = promisify(deflate);
const BAND = 64;

interface Canvas {
  width: number;
  height: number;
  /** Side length of a single-color square in pixels. 1 is the finest. */
  cell: number;
  transparent: boolean;
}

async function png(scene: Scene, { width, height, cell, transparent }: Canvas): Promise<Buffer> {
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
