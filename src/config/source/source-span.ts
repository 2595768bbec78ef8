import type { LineCounter } from "yaml";

/** One file of the config, and where its lines begin. */
export interface SourceFile {
  /** Absolute. */
  readonly file: string;
  readonly text: string;
  readonly lines: LineCounter;
}

/** Offsets into a source's text. */
export interface SourceSpan {
  readonly source: SourceFile;
  readonly start: number;
  readonly end: number;
}
