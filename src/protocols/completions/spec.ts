// Fields, dialects, and usage that both halves of the completions protocol share.
import type { Feature } from "../../model/facts.ts";
import { type Usage, inputTokens, outputTokens } from "../../model/usage.ts";
import type { Body, JsonObject, Opt } from "../../model/values.ts";
import type { FieldAllowlist } from "../../plugin/index.ts";
import type { RequestFacts } from "../../plugin/references.ts";
import { analyzeCost } from "../cost-analysis.ts";
import {
  isTruthyFlag,
  asNumber,
  asCount,
  asObject,
  omitUndefined,
  asList,
} from "../json-values.ts";
import {
  freeTextFields,
  valueFields,
  referencedFeatures,
  findReferences,
} from "../references/index.ts";
import { isMultiplierField } from "../requested-amounts.ts";

/** ID of this protocol and its known fields. */
export const ID = "completions";

/** Fields that the common form can represent. */
export const COMMON_FIELDS: readonly string[] = [
  "model",
  "prompt",
  "suffix",
  "max_tokens",
  "stop",
  "temperature",
  "top_p",
  "seed",
  "n",
  "presence_penalty",
  "frequency_penalty",
  "stream",
  "user",
];

/** Fields that only this protocol documents. They are sent back only in this protocol. */
export const PROTOCOL_FIELDS: readonly string[] = [
  "echo",
  "best_of",
  "logprobs",
  "logit_bias",
  "stream_options",
];

export const knowsField = (field: string): boolean =>
  COMMON_FIELDS.includes(field) || PROTOCOL_FIELDS.includes(field) || isMultiplierField(field);

/**
 * Describes how backends that speak this protocol differ. It is plain data, so that a provider can
 * be a row. Unset options mean the behavior of OpenAI's own API.
 */
export interface CompletionDialect {
  /** Whether the backend supports `stream_options.include_usage`. Default: supported. */
  streamUsage?: "include_usage" | "none";
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
  ["text to continue and its suffix", valueFields("prompt suffix")],
  [
    "parameters of a single response",
    {
      ...valueFields(
        "max_tokens min_tokens temperature top_p top_k n best_of echo logprobs stop seed random_seed presence_penalty " +
          "frequency_penalty repetition_penalty stream",
      ),
      ...freeTextFields("logit_bias"),
      stream_options: valueFields("include_usage"),
    },
  ],
  ["the user identifier, sent as a hash", valueFields("user")],
];

/** Analyzes a request body in both modes: what it can cost and which model features it needs. */
export function analyze(body: Body): RequestFacts {
  // Prompts are excluded from the search for references. Lists of token IDs are long and contain no
  // references.
  const { prompt, ...fields } = body;
  const named = findReferences(fields);
  const prompts = promptsIn(prompt);
  const bound = asNumber(body["max_tokens"]);
  // With `echo`, the prompt is output again. A token is at least one byte, so the prompt's bytes
  // are an upper limit of its tokens.
  const again = isTruthyFlag(body["echo"]) ? longestPromptTokens(prompts) : 0;
  const spent = analyzeCost(fields, named, {
    maxOutput: bound === undefined ? undefined : bound + again,
  });
  const each = spent.n ?? 1;
  const features: Feature[] = [];
  if (body["stream"] === true) features.push("stream");
  if (each > 1 || prompts.length > 1) features.push("n");
  return {
    features: [...features, ...referencedFeatures(named)],
    references: named,
    ...spent,
    n: each * prompts.length,
  };
}

/**
 * Returns the prompts. A single text or a single list of token IDs becomes a list with one prompt.
 */
export function promptsIn(prompt: unknown): readonly (string | readonly number[])[] {
  if (typeof prompt === "string") return [prompt];
  const all = asList(prompt) as readonly (string | number | readonly number[])[];
  return typeof all[0] === "number" ? [all as readonly number[]] : (all as readonly string[]);
}

const longestPromptTokens = (prompts: readonly (string | readonly number[])[]): number =>
  prompts.reduce(
    (most, one) => Math.max(most, typeof one === "string" ? Buffer.byteLength(one) : one.length),
    0,
  );

// Converts token counts, which have the same form as in chat completions.

/** Returns the canonical usage. Counts that were not reported are omitted. */
export function usageOf(report: Opt<JsonObject>): Usage {
  const read = asCount(report?.["prompt_tokens"]);
  const cached = asCount(asObject(report?.["prompt_tokens_details"])?.["cached_tokens"]);
  return omitUndefined({
    input: read === undefined ? undefined : Math.max(0, read - (cached ?? 0)),
    cache_read: cached,
    output: asCount(report?.["completion_tokens"]),
  });
}

export function usageTo(u: Usage): JsonObject {
  const [read, written] = [inputTokens(u), outputTokens(u)];
  return { prompt_tokens: read, completion_tokens: written, total_tokens: read + written };
}
