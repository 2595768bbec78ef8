import { BOUNDS } from "../../lib/bounds.ts";
import type { ImageFacts } from "../facts.ts";
import type { UsageEstimate, OperationSpec } from "./operation-spec.ts";

/** A high-quality 1536 × 1024 picture is about 6,200 tokens with the vendors that bill pictures so: one for each 252 pixels. */
const TOKENS_A_PICTURE = 8_192;
const PIXELS_A_TOKEN = 192;
/** Where nothing states a size. */
const USUAL_PIXELS = 4e6;
const SIZE = {
  param: "size",
  advice:
    'Set size to "<width>x<height>", or have the operator set limits: { output: … } or image: { sizes: […] } for this model.',
} as const;
/** What a request to change pictures can be read as: sixteen of them, a mask, and words at four tokens a character. */
const MOST_READ = 17 * TOKENS_A_PICTURE + 4 * 32_000;

/** Pictures: what every protocol that draws says as its `work`. */
export const imageOperation: OperationSpec<"image"> = {
  name: "image",
  noun: "an image model",
  outputModality: "image",
  requiresCatalogEntry: true,
  generatesTokens: false,
  completeUnitSets: [["output"], ["images"], ["image_out"]],
  // By whichever measure the price lists: pieces, megapixels, or tokens.
  estimateUsage({ isWorstCase, input, n, hasMedia, size, maxPixels, modelMaxOutput }) {
    const stated = areaOf(size) ?? (isWorstCase ? maxPixels : undefined);
    const area = stated ?? USUAL_PIXELS;
    const images = { units: ["images"], count: n } as const;
    const tokens =
      isWorstCase || stated !== undefined
        ? Math.max(TOKENS_A_PICTURE, Math.ceil(area / PIXELS_A_TOKEN))
        : TOKENS_A_PICTURE;
    const each = isWorstCase && stated === undefined ? (modelMaxOutput ?? tokens) : tokens;
    const open = isWorstCase && stated === undefined && SIZE;
    const drawn = {
      count: n * each,
      ...(open && modelMaxOutput === undefined && { unbounded: open }),
    };
    const read: UsageEstimate = hasMedia
      ? { units: ["input", "image_in"], count: Math.min(input, MOST_READ) }
      : { units: ["input"], count: input };
    return [
      [images],
      [
        images,
        {
          units: ["megapixels"],
          count: n * Math.ceil(area / 1e6),
          ...(open && { unbounded: open }),
        },
      ],
      [read, { units: ["image_out"], ...drawn }],
      [read, { units: ["output"], ...drawn }],
    ];
  },
  estimateMissingUsage: ({ usage, n }) => ({ ...usage, images: usage.images ?? n }),
  analyzeCost: ({ n, size, quality }) => ({ n, size, quality }),
  maxResponseBytes: BOUNDS.imageResponse.max,
  pricingHint: ['{ images: "…" }', "dollars each"],
  priceExamples: [
    { description: "one image", usage: { images: 1 } },
    { description: "one image of 1024x1024", usage: { images: 1, megapixels: 1.048576 } },
    // About as many as a square of middling quality has.
    { description: "100 tokens in, 1,000 of image out", usage: { input: 100, image_out: 1_000 } },
    { description: "100 tokens in, 1,000 out", usage: { input: 100, output: 1_000 } },
  ],
  sampleRequest: (model) => ({
    operation: "image",
    model,
    stream: false,
    prompt: "A round sun",
    n: 1,
    inputImages: [],
    responseFormat: "bytes",
    rest: {},
    ext: {},
  }),
};

/** Pixels. Undefined: the size is left to the model, or said in words. */
export function areaOf(size: string | undefined): number | undefined {
  const [, wide, high] = /^(\d{1,6})x(\d{1,6})$/.exec(size ?? "") ?? [];
  return Number(wide) * Number(high) || undefined;
}

/** Pixels of the largest picture that a model draws. Undefined: not known. */
export function largestOf(facts: ImageFacts | undefined): number | undefined {
  const { sizes = [], sides } = facts ?? {};
  const areas = sizes.map((size) => areaOf(size) ?? 0);
  return Math.max(...areas, sides ? sides.max ** 2 : 0) || undefined;
}
