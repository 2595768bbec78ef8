// Fields, dialects, and usage that both halves of the embeddings protocol share.
import { countTokenIds } from "../../model/operations/embedding-operation.ts";
import type { Usage } from "../../model/usage.ts";
import type { Body, JsonObject, Opt } from "../../model/values.ts";
import type { FieldAllowlist } from "../../plugin/index.ts";
import type { RequestFacts } from "../../plugin/references.ts";
import { analyzeFields } from "../cost-analysis.ts";
import { asCount, asList } from "../json-values.ts";
import { valueFields } from "../references/index.ts";
import { isMultiplierField } from "../requested-amounts.ts";
import type { TaskNames } from "./embedding-requests.ts";

/** ID of this protocol and its known fields. */
export const ID = "embeddings";

/** Fields that the common form can represent. */
export const COMMON_FIELDS: readonly string[] = [
  "model",
  "input",
  "dimensions",
  "output_dimension",
  "output_dtype",
  "truncate",
  "truncation",
  "stream",
  "user",
];

/**
 * Field for the encoding of vectors. It exists only in this protocol, because other protocols have
 * their own forms.
 */
export const ENCODING_FORMAT = "encoding_format";

/** Fields that state the purpose of the vectors. OpenAI has no such field. */
export const TASK_FIELDS = ["input_type", "task_type", "task"] as const;

/** Whether this protocol has a field, in any dialect. */
export const knowsField = (field: string): boolean =>
  field === ENCODING_FORMAT ||
  COMMON_FIELDS.includes(field) ||
  (TASK_FIELDS as readonly string[]).includes(field) ||
  isMultiplierField(field);

/**
 * Describes how backends that speak this protocol differ. It is plain data, so that a provider can
 * be a row. Unset options mean the behavior of OpenAI's own API.
 */
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

/**
 * Lists the request fields that may be sent under zero data retention, from the documentation of
 * OpenAI and of compatible backends.
 */
export const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["which model", valueFields("model")],
  ["inputs to embed", valueFields("input")],
  [
    "format of the embeddings",
    valueFields("encoding_format dimensions output_dimension output_dtype normalized"),
  ],
  ["purpose of the embeddings, which models use", valueFields("input_type task_type task")],
  ["handling of texts that are too long", valueFields("truncate truncation")],
  ["the user identifier, sent as a hash", valueFields("user")],
];

/** Analyzes a request body in both modes: what it can cost and which model features it needs. */
export function analyze(body: Body): RequestFacts {
  // Inputs are excluded from the search for references. Lists of token IDs are long and contain no
  // references.
  const { input, ...fields } = body;
  return {
    ...analyzeFields(fields),
    exactUsage: countTokenIds(inputsIn(input)),
    media: countMedia(fields),
  };
}

/**
 * Returns the inputs. A single text or a single list of token IDs becomes a list with one input.
 */
export function inputsIn(input: unknown): readonly (string | readonly number[])[] {
  if (typeof input === "string") return [input];
  const all = asList(input) as readonly (string | number | readonly number[])[];
  return typeof all[0] === "number" ? [all as readonly number[]] : (all as readonly string[]);
}

/**
 * Fields in which some backends accept images, audio, or URLs of texts. Only the backend can
 * determine the amount of input that they contain.
 */
const MEDIA_FIELDS: ReadonlySet<string> = new Set(
  "image images image_url image_urls video videos audio audios documents document inputs contents content url urls file files".split(
    " ",
  ),
);

function countMedia(fields: Body): RequestFacts["media"] {
  let count = 0;
  for (const field in fields)
    if (MEDIA_FIELDS.has(field.toLowerCase()) && fields[field] != null) count++;
  return count > 0 ? { count, bytes: 0 } : undefined;
}

// Converts token counts. Backends use one of two names, and some use both.

/** Returns the canonical usage. Counts that were not reported are omitted. */
export function usageOf(report: Opt<JsonObject>): Usage {
  const input = asCount(report?.["prompt_tokens"] ?? report?.["total_tokens"]);
  return input === undefined ? {} : { input };
}

export const usageTo = ({ input = 0 }: Usage): JsonObject => ({
  prompt_tokens: input,
  total_tokens: input,
});
