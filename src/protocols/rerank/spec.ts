// Fields, dialects, usage, and rules of rankings that both halves of the protocol share.
import { fail } from "../../model/error.ts";
import { estimateRerankUsage } from "../../model/operations/rerank-operation.ts";
import type { RankedDocument } from "../../model/request.ts";
import type { Usage } from "../../model/usage.ts";
import type { Body, JsonObject, Json, Opt } from "../../model/values.ts";
import type { FieldAllowlist } from "../../plugin/index.ts";
import type { RequestFacts } from "../../plugin/references.ts";
import { analyzeFields } from "../cost-analysis.ts";
import {
  isObject,
  asList,
  asText,
  asCount,
  asNumber,
  asObject,
  omitUndefinedOrNothing,
  asBoolean,
  omitUndefined,
} from "../json-values.ts";
import { freeTextFields, valueFields } from "../references/index.ts";
import { isMultiplierField } from "../requested-amounts.ts";

/** The protocol's name and the fields that it knows. */
export const ID = "rerank";

export const VOYAGE_ID = "voyage-rerank";

/** Fields that the common form can express, under the same or another name. */
export const COMMON_FIELDS: readonly string[] = [
  "model",
  "query",
  "documents",
  "top_n",
  "top_k",
  "return_documents",
  "max_tokens_per_doc",
  "truncation",
  "stream",
  "user",
];

export const knowsField = (field: string): boolean =>
  COMMON_FIELDS.includes(field) || isMultiplierField(field);

/**
 * Differences between backends that use this protocol. A dialect is plain data, so a provider can
 * be defined without code. Default for every field: the behavior of Cohere.
 */
export interface RerankDialect {
  /**
   * Whether the backend accepts `return_documents`. Default: true. The client receives the
   * documents in both cases, because its own request contains them.
   */
  returnsDocuments?: boolean;
  /** Whether the backend accepts only text documents. Default: objects are sent unchanged. */
  textOnly?: boolean;
  /**
   * Top-level fields that the backend rejects with an error. The gateway drops them and warns the
   * client.
   */
  dropFields?: readonly string[];
}

/**
 * Request fields that may be sent under `Service-ZDR`, reviewed against the documentation of Cohere
 * and of compatible backends.
 */
export const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["which model", valueFields("model")],
  ["query and documents", { ...valueFields("query"), ...freeTextFields("documents") }],
  ["contents of the result", valueFields("top_n top_k return_documents rank_fields")],
  ["handling of texts that are too long", valueFields("max_tokens_per_doc truncation truncate")],
];

/** Analyzes a request in both modes: its possible cost and the features that the model needs. */
export function analyze(body: Body): RequestFacts {
  return {
    ...analyzeFields(body),
    ...estimateRerankUsage(asText(body["query"]) ?? "", documentsIn(body)),
  };
}

/**
 * Returns the documents. Validation rejects an entry that is neither a string nor an object. Here
 * such an entry counts as an empty document.
 */
const documentsIn = (body: Body) =>
  asList(body["documents"]).map((one) => (typeof one === "string" || isObject(one) ? one : ""));

/** Usage of a ranking: search units if the backend reports them, else tokens. */
export function usageOf({ meta, usage }: JsonObject): Usage {
  const billing = asObject(meta);
  const searches = asNumber(asObject(billing?.["billed_units"])?.["search_units"]);
  if (searches !== undefined) return { searches };
  const counted = asObject(usage);
  const input =
    asCount(counted?.["total_tokens"]) ??
    asCount(counted?.["prompt_tokens"]) ??
    asCount(asObject(billing?.["tokens"])?.["input_tokens"]);
  return input === undefined ? {} : { input };
}

/** Returns the units that Cohere's clients read. */
export const metaTo = ({ searches, input }: Usage): JsonObject => ({
  api_version: { version: "2" },
  billed_units: omitUndefinedOrNothing({ search_units: searches, input_tokens: input }) ?? {},
});

/** Returns the token count that the clients of Jina and Voyage read. */
export const tokensTo = ({ input = 0 }: Usage): JsonObject => ({ total_tokens: input });

// Checks and sorts rankings. Results are sorted by score, and equal scores by index. A ranking is
// invalid if it contains an unknown document or the same document twice.

/** The results that the client expects. */
export interface RankingExpectation {
  readonly documents: readonly Json[];
  readonly topN: number;
  readonly returnDocuments: boolean;
}

export function readRankingExpectation(body: Body): RankingExpectation {
  const documents = asList(body["documents"]);
  const most = asNumber(body["top_n"]) ?? asNumber(body["top_k"]);
  return {
    documents,
    // A `top_n` above the number of documents is allowed.
    topN: Math.min(most ?? documents.length, documents.length),
    returnDocuments: asBoolean(body["return_documents"]) ?? false,
  };
}

/** Parses one row of a backend's response. */
export function parseRankedDocument(row: unknown): RankedDocument {
  const item = asObject(row);
  const index = asNumber(item?.["index"]);
  const score = asNumber(item?.["relevance_score"]) ?? asNumber(item?.["score"]);
  if (index === undefined || score === undefined)
    return fail("upstream", "The provider's ranking has no index or no score.", {
      code: "bad_answer",
    });
  return { index, score };
}

/**
 * Returns the sorted ranking, cut to `topN`. Throws if the ranking is not a valid response to this
 * request.
 */
export function validateRanking(
  rankings: readonly RankedDocument[],
  wish: RankingExpectation,
): readonly RankedDocument[] {
  const seen = new Set<number>();
  for (const { index } of rankings) {
    if (!Number.isInteger(index) || index < 0 || index >= wish.documents.length || seen.has(index))
      fail(
        "upstream",
        `The provider ranked document ${index}, which does not exist or was already ranked.`,
        {
          code: "bad_ranking",
        },
      );
    seen.add(index);
  }
  if (rankings.length < wish.topN)
    fail("upstream", `The provider ranked ${rankings.length} of ${wish.topN} documents.`, {
      code: "bad_ranking",
    });
  return rankings.toSorted((a, b) => b.score - a.score || a.index - b.index).slice(0, wish.topN);
}

/** Returns a document in the form that clients read: an object with a `text` member. */
export const toDocumentObject = (document: Opt<Json>): JsonObject =>
  isObject(document) ? document : omitUndefined({ text: document });
