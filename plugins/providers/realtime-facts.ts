import type { ModelInfo, PriceLine, Unit } from "tollgate/plugin";

/** Rates of one type of tokens, in US dollars per million. */
interface Rates {
  input: string;
  cached?: string;
  output?: string;
}

/**
 * Creates a realtime model: a model that listens and speaks over a socket. `price` is the vendor's
 * published price. If unset, the price is unknown.
 */
export const realtimeModel = (
  model: string,
  {
    price,
    limits,
    retires,
  }: {
    price?: { text: Rates; audio: Rates; image?: Rates };
    limits?: { context: number; output: number };
    retires?: string;
  },
): ModelInfo => ({
  model,
  operation: "realtime",
  ...(limits && { limits }),
  ...(retires !== undefined && { retires }),
  ...(price && {
    price: {
      lines: [
        ...linesOf(price.text, ["input", "cache_read", "output"]),
        ...linesOf(price.audio, ["audio_in", "cache_read_audio", "audio_out"]),
        ...linesOf(price.image, ["image_in", "cache_read_image", "image_out"]),
      ],
    },
  }),
});

function linesOf(
  rates: Rates | undefined,
  [input, cached, output]: readonly [Unit, Unit, Unit],
): PriceLine[] {
  if (!rates) return [];
  const amounts: [Unit, string | undefined][] = [
    [input, rates.input],
    [cached, rates.cached],
    [output, rates.output],
  ];
  return amounts.flatMap(([unit, usd]) =>
    usd === undefined ? [] : [{ unit, usd, per: 1_000_000 }],
  );
}
