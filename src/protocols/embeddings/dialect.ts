// Describes how backends that speak this protocol differ. It is plain data, so that a provider can
// be a row. Unset options mean the behavior of OpenAI's own API.
import type { TaskNames } from "./embedding-tasks.ts";

export interface EmbeddingDialect {
  /**
   * Values of `encoding_format` that the backend accepts. Default: float and base64. Clients always
   * receive the form that they requested.
   */
  encodingFormats?: readonly ("float" | "base64")[];
  /** Field for the number of dimensions. Default: `dimensions`. false: the backend has none. */
  dimensions?: "dimensions" | "output_dimension" | false;
  /**
   * Field for the purpose of the vectors and its values. If unset, the client's own value is sent
   * unchanged. false: the backend has no such field.
   */
  task?: { field: string; words: TaskNames } | false;
  /**
   * Boolean field that allows truncation of long texts. If unset, the client's own field is sent
   * unchanged.
   */
  truncate?: "truncation";
  /** Whether the backend accepts token IDs as input. Default: true. */
  tokenIds?: boolean;
  /**
   * Top-level fields that the backend rejects with an error. They are dropped, and the client
   * receives a warning.
   */
  dropFields?: readonly string[];
}
