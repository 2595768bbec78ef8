import type { LineCounter } from "yaml";

/** A file of the config, with the starts of its lines. */
export interface SourceFile {
  /** Absolute path. */
  readonly file: string;
  readonly text: string;
  readonly lines: LineCounter;
}

/** Offsets in the text of a source. */
export interface SourceSpan {
  readonly source: SourceFile;
  readonly start: number;
  readonly end: number;
}
