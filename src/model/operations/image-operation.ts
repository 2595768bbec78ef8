import { BOUNDS } from "../../lib/bounds.ts";
import type { ImageFacts } from "../facts.ts";
import type { UsageEstimate, OperationSpec } from "./operation-spec.ts";

/**
 * Tokens per image. A high-quality image of 1536 × 1024 pixels has about 6,200 tokens at providers
 * that bill images in tokens: one per 252 pixels.
 */
const TOKENS_A_PICTURE = 8_192;
const PIXELS_A_TOKEN = 192;
/** Pixels that are assumed if no size is stated. */
const USUAL_PIXELS = 4e6;
const SIZE = {
  param: "size",
  advice:
    'Set size to "<width>x<height>", or have the operator set limits: { output: … } or image: { sizes: […] } for this model.',
} as const;
/**
 * Maximum tokens of an image edit request: 16 images, a mask, and text at 4 tokens per character.
 */
const MOST_READ = 17 * TOKENS_A_PICTURE + 4 * 32_000;

/** Image generation and editing. Used as `operation` by every image protocol. */
export const imageOperation: OperationSpec<"image"> = {
  name: "image",
  noun: "an image model",
  outputModality: "image",
  requiresCatalogEntry: true,
  generatesTokens: false,
  completeUnitSets: [["output"], ["images"], ["image_out"]],
  // The unit is the unit in which the price is listed: images, megapixels, or tokens.
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
    // This is about the number of tokens of a square image in medium quality.
    {
      description: "100 tokens in, 1,000 image tokens out",
      usage: { input: 100, image_out: 1_000 },
    },
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

/**
 * Returns the number of pixels of a size. Undefined if the model chooses the size, or if the size
 * is a word.
 */
export function areaOf(size: string | undefined): number | undefined {
  const [, wide, high] = /^(\d{1,6})x(\d{1,6})$/.exec(size ?? "") ?? [];
  return Number(wide) * Number(high) || undefined;
}

/**
 * Returns the number of pixels of the largest image that a model generates. Undefined if unknown.
 */
export function largestOf(facts: ImageFacts | undefined): number | undefined {
  const { sizes = [], sides } = facts ?? {};
  const areas = sizes.map((size) => areaOf(size) ?? 0);
  return Math.max(...areas, sides ? sides.max ** 2 : 0) || undefined;
}
