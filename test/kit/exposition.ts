// Parses both formats of metrics like a scraper, one sample per line.

export interface ParsedSample {
  readonly name: string;
  /** Labels as written: `a="b",c="d"`. */
  readonly labels: string;
  readonly value: number;
}

const LINE =
  /^([a-zA-Z_:][\w:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)(?: # .*)?$/;

/** Fails on a line that is neither a comment nor a sample. */
export const parseSamples = (text: string): readonly ParsedSample[] =>
  text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const [, name, labels = "", value] = LINE.exec(line) ?? [];
      if (name === undefined) throw new Error(`No sample: ${line}`);
      return { name, labels, value: Number(value) };
    });

/** Sums all series of a name whose labels contain these texts. */
export const sumSamples = (text: string, name: string, ...words: readonly string[]): number =>
  parseSamples(text)
    .filter((one) => one.name === name && words.every((word) => one.labels.includes(word)))
    .reduce((sum, { value }) => sum + value, 0);
