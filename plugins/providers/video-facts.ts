import type { ModelInfo } from "tollgate/plugin";

/**
 * Creates a video model. `rates` are the vendor's published prices per second, in US dollars, by
 * size. If unset, the price is unknown.
 */
export const videoModel = (
  model: string,
  rates?: readonly { readonly usd: string; readonly sizes: readonly string[] }[],
): ModelInfo => ({
  model,
  operation: "video",
  ...(rates && {
    price: {
      lines: rates.flatMap(({ usd, sizes }) =>
        sizes.map((size) => ({
          unit: "seconds_out" as const,
          usd,
          per: 1 as const,
          variant: { size },
        })),
      ),
    },
  }),
});

/** Sizes in portrait and landscape format. */
export const VIDEO_SIZES = {
  p720: ["720x1280", "1280x720"],
  p1024: ["1024x1792", "1792x1024"],
  p1080: ["1080x1920", "1920x1080"],
  p2160: ["2160x3840", "3840x2160"],
} as const;
