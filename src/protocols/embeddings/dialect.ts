// What differs between hosts that speak this wire. Data, so that a provider can be a row. Everything absent is what OpenAI has.
import type { TaskNames } from "./embedding-tasks.ts";

export interface EmbeddingDialect {
  /** Values of `encoding_format` that are no error. Absent: float and base64. A client gets its form whatever upstream gave. */
  encodingFormats?: readonly ("float" | "base64")[];
  /** The field that says how wide vectors shall be. Absent: `dimensions`; false: none. */
  dimensions?: "dimensions" | "output_dimension" | false;
  /** The field that says what vectors are for, and its words. Absent: a client's own word travels as it is; false: there is none. */
  task?: { field: string; words: TaskNames } | false;
  /** The field, true or false, that lets a text that is too long be cut. Absent: a client's own travels as it is. */
  truncate?: "truncation";
  /** It reads ids of tokens. Absent: it does. */
  tokenIds?: boolean;
  /** Top-level fields that are answered with an error; dropped, and the client is told. */
  dropFields?: readonly string[];
}
