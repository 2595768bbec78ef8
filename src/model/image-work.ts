import { BOUNDS } from "../lib/bounds.ts";
import type { Portion, Work } from "./work.ts";

/** A high-quality 1536 × 1024 picture is about 6,200 tokens with the vendors that bill pictures so. */
const TOKENS_A_PICTURE = 8_192;
const MOST_MEGAPIXELS = 4;
/** What a request to change pictures can be read as: sixteen of them, a mask, and words at four tokens a character. */
const MOST_READ = 17 * TOKENS_A_PICTURE + 4 * 32_000;

/** Pictures: what every protocol that draws says as its `work`. */
export const imageWork: Work<"image"> = {
  kind: "image",
  noun: "an image model",
  modality: "image",
  listed: true,
  written: false,
  whole: [["output"], ["images"], ["image_out"]],
  // By whichever measure the price lists: pieces, megapixels, or tokens.
  most({ input, n, media, size = "" }) {
    const [wide, high] = size.split("x").map(Number);
    const pixels = wide && high ? Math.ceil((wide * high) / 1e6) : MOST_MEGAPIXELS;
    const images = { units: ["images"], count: n } as const;
    const read: Portion = media
      ? { units: ["input", "image_in"], count: Math.min(input, MOST_READ) }
      : { units: ["input"], count: input };
    return [
      [images],
      [images, { units: ["megapixels"], count: n * pixels }],
      [read, { units: ["image_out"], count: n * TOKENS_A_PICTURE }],
      [read, { units: ["output"], count: n * TOKENS_A_PICTURE }],
    ];
  },
  guess: ({ usage, n }) => ({ ...usage, images: usage.images ?? n }),
  extent: ({ n, size, quality }) => ({ n, size, quality }),
  maxBytes: BOUNDS.pictures.most,
  pricing: ['{ images: "…" }', "dollars each"],
  examples: [
    { about: "one image", usage: { images: 1 } },
    { about: "one image of 1024x1024", usage: { images: 1, megapixels: 1.048576 } },
    // About as many as a square of middling quality has.
    { about: "100 tokens in, 1,000 of image out", usage: { input: 100, image_out: 1_000 } },
    { about: "100 tokens in, 1,000 out", usage: { input: 100, output: 1_000 } },
  ],
  sample: (model) => ({
    kind: "image",
    model,
    stream: false,
    prompt: "A round sun",
    n: 1,
    refs: [],
    want: "bytes",
    rest: {},
    ext: {},
  }),
};
