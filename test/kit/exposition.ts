// What a scraper would read of either form: a line a sample.

export interface ParsedSample {
  readonly name: string;
  /** As they are written: `a="b",c="d"`. */
  readonly labels: string;
  readonly value: number;
}

const LINE =
  /^([a-zA-Z_:][\w:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)(?: # .*)?$/;

/** Fails at a line that is neither a comment nor a sample. */
export const parseSamples = (text: string): readonly ParsedSample[] =>
  text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const [, name, labels = "", value] = LINE.exec(line) ?? [];
      if (name === undefined) throw new Error(`No sample: ${line}`);
      return { name, labels, value: Number(value) };
    });

/** The sum of all series of a name, of those whose labels hold these words. */
export const sumSamples = (text: string, name: string, ...words: readonly string[]): number =>
  parseSamples(text)
    .filter((one) => one.name === name && words.every((word) => one.labels.includes(word)))
    .reduce((sum, { value }) => sum + value, 0);
