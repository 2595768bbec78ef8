// Resolves a section of the config by its schema: keys are converted to camelCase, durations to
// milliseconds, and sizes to bytes. The schema is the only declaration of an option, and the
// option's type follows from it.
import { parseDuration, parseSize } from "../lib/time/units.ts";

type Mapping = Readonly<Record<string, unknown>>;

const UNITS = {
  duration: { suffix: "Ms", parse: (value: unknown) => parseDuration(value as string) },
  size: { suffix: "Bytes", parse: (value: unknown) => parseSize(String(value)) },
} as const;
type Unit = keyof typeof UNITS;

type CamelCase<K extends string> = K extends `${infer A}_${infer B}`
  ? `${A}${Capitalize<CamelCase<B>>}`
  : K;

type ResolvedKey<K extends string, S> = S extends { "x-unit": infer U extends Unit }
  ? `${CamelCase<K>}${(typeof UNITS)[U]["suffix"]}`
  : CamelCase<K>;

type Value<S> = S extends { "x-unit": Unit }
  ? number
  : S extends { properties: infer P }
    ? ResolvedSection<P>
    : S extends { enum: readonly (infer E)[] }
      ? E
      : S extends { type: "array"; items: infer I }
        ? readonly Value<I>[]
        : S extends { type: "boolean" }
          ? boolean
          : S extends { type: "integer" | "number" }
            ? number
            : S extends { type: "string" }
              ? string
              : never;

/** Values of a section after resolving. An option without a default may be undefined. */
export type ResolvedSection<P> = {
  readonly [K in keyof P & string as ResolvedKey<K, P[K]>]: P[K] extends { default: unknown }
    ? Value<P[K]>
    : Value<P[K]> | undefined;
};

/**
 * @param properties Schemas of its options.
 * @param values Values with defaults filled in.
 */
export const resolveSection = <P extends object>(
  properties: P,
  values: Mapping,
): ResolvedSection<P> =>
  Object.fromEntries(
    Object.entries(properties as Record<string, Mapping>).map(([key, schema]) =>
      resolveOption(key, schema, values[key]),
    ),
  ) as ResolvedSection<P>;

function resolveOption(key: string, schema: Mapping, value: unknown): [string, unknown] {
  const name = key.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  const unit = schema["x-unit"] as Unit | undefined;
  if (unit !== undefined)
    return [name + UNITS[unit].suffix, value === undefined ? undefined : UNITS[unit].parse(value)];
  const { properties } = schema;
  return [
    name,
    properties === undefined || value === undefined
      ? value
      : resolveSection(properties as Mapping, value as Mapping),
  ];
}
