import type { Operation, ModelRequest } from "../request.ts";
import type { Unit, Usage } from "../usage.ts";
import type { Opt } from "../values.ts";

/**
 * Factors that determine the cost of a request. Request analysis derives them from a body, and
 * `OperationSpec.analyzeCost` from a decoded request.
 */
export interface CostFactors {
  /** Maximum output tokens of one response, as the client set it. */
  maxOutput?: Opt<number>;
  /** Number of responses or images. */
  n?: Opt<number>;
  /** Image size that the client requests, such as `1024x1024`. */
  size?: Opt<string>;
  /** Image quality that the client requests. */
  quality?: Opt<string>;
  /**
   * Usage that follows from the request alone, such as characters to speak or searches to run. If
   * the price has lines for these units, they are billed, unless the provider reports the same
   * unit. A bill that consists only of these units is exact.
   */
  exactUsage?: Opt<Usage>;
  /** Expected usage of units that `exactUsage` lacks. A bill that is based on it is an estimate. */
  expectedUsage?: Opt<Usage>;
  /** Maximum usage of units that `exactUsage` does not bound. A hard budget reserves it. */
  maxUsage?: Opt<Usage>;
  /**
   * Path of a field that affects the cost and cannot be interpreted, such as a number in an unusual
   * notation, or a list. Under a hard budget, the request is rejected.
   */
  unreadableField?: Opt<string>;
}

/** Input for a usage estimate. The host computes it from the request that is sent. */
export interface UsageEstimateInput {
  /**
   * Whether the result must be an upper bound of the bill. Otherwise, the result is the expected
   * usage.
   */
  isWorstCase: boolean;
  /**
   * Input tokens: an upper bound if `isWorstCase`, otherwise an estimate from the number of bytes.
   */
  input: number;
  /** Output tokens of one response, or 0 if the operation does not generate tokens. */
  output: number;
  /** Number of responses or images. */
  n: number;
  /** Maximum number of hosted tool runs. */
  toolRuns: number;
  /** Units in which providers bill hosted tools. */
  tools: readonly Unit[];
  /** Whether images or audio may be in the input or output. */
  hasMedia: boolean;
  /** Image size that the client requests. */
  size?: Opt<string>;
  /** Units that the request alone determines. */
  exactUsage: Usage;
  /** Expected usage of units that `exactUsage` lacks. */
  expectedUsage: Usage;
  /** Upper bounds of units that `exactUsage` does not bound. */
  maxUsage: Usage;
  /** Maximum output tokens of the model for one response, if the catalog contains it. */
  modelMaxOutput?: Opt<number>;
  /** Pixels of the largest image that the model generates, if the catalog contains it. */
  maxPixels?: Opt<number>;
}

/**
 * Estimated count of one unit. If several units are listed, the most expensive one under the price
 * counts, because the provider decides which one applies.
 */
export interface UsageEstimate {
  /** Units in which the operation may be billed. */
  units: readonly [Unit, ...Unit[]];
  /** Number of units. */
  count: number;
  /** Whether the count is ignored if the price has no line for it. */
  optional?: Opt<boolean>;
  /**
   * Set if no sent field limits this count. A hard budget then rejects the request and names this
   * field and this advice.
   */
  unbounded?: Opt<{ readonly param: string; readonly advice: string }>;
}

/** Observations about a response with an incomplete usage report. */
export interface ObservedUsage {
  /** Usage that the provider reported. */
  usage: Usage;
  /** Input tokens, from the estimate on which the reservation is based. */
  inputTokens: number;
  /** Output tokens, estimated from the text that was received. */
  outputTokens: number;
  /** Number of responses or images that the client requested. */
  n: number;
  /** Usage that the request made likely. */
  expectedUsage: Usage;
}

/**
 * Description of an operation for the host, which uses it for reservations, metering, model lists,
 * and delivery. Each protocol of the operation refers to it. For a request, the description of the
 * frontend's protocol is used. It contains only data and pure functions. The functions are called
 * for every request. If one throws, the request fails with status 500.
 */
export interface OperationSpec<K extends Operation = Operation> {
  /** Name in letters, digits, and dashes. It is the key in `Operations`. */
  readonly name: K;
  /** Name with its article, for people: "an embedding model". */
  readonly noun: string;
  /** Output type in model lists, such as "text", "image", or "embeddings". */
  readonly outputModality: string;
  /**
   * Whether a model can be called only if its exact name is in a live list, in shipped metadata, or
   * in the operator's configuration. Otherwise, a request for an unlisted name is forwarded as this
   * operation, and the provider decides. Only chat has the value `false`, because chat is the
   * operation that is assumed for unknown names.
   */
  readonly requiresCatalogEntry: boolean;
  /**
   * Whether responses are generated token by token up to a limit. A hard budget sets that limit
   * upstream, and rejects an endpoint that does not support one. A response that broke off is
   * assumed to have been generated until upstream noticed.
   */
  readonly generatesTokens: boolean;
  /** Sets of units. A usage report is complete if it contains all units of one set. */
  readonly completeUnitSets: readonly (readonly Unit[])[];
  /**
   * Returns the possible usage of a call, in every measure by which providers bill it. The first
   * measure for which the price has lines is used for the reservation. Called for each reservation.
   */
  estimateUsage(of: UsageEstimateInput): readonly (readonly UsageEstimate[])[];
  /**
   * Returns the assumed usage of a response whose usage report is incomplete. Called when the
   * response has ended or was truncated.
   */
  estimateMissingUsage(of: ObservedUsage): Usage;
  /**
   * Returns the cost factors of a request that is sent as it was decoded or as a rewrite hook
   * changed it. If unset, the analysis of the client's request applies.
   */
  analyzeCost?(request: ModelRequest<K>): CostFactors;
  /**
   * Returns the request with this output limit per response. A hard budget calls it for an endpoint
   * that sends requests itself. If it is unset and the operation generates tokens, such an endpoint
   * is rejected.
   */
  withOutputCap?(request: ModelRequest<K>, tokens: number): ModelRequest<K>;
  /** Maximum bytes of one buffered response, if `bounds.response` is not suitable. */
  readonly maxResponseBytes?: number;
  /**
   * Whether the outputs of different models must not be mixed, as with embeddings. A model name
   * that maps to several models is then a config error, which is detected when a config generation
   * is built. Default: models may replace each other.
   */
  readonly outputIsModelSpecific?: boolean;
  /**
   * Whether several responses to one request (`n`) are available only in the client's own protocol,
   * because no codec encodes more than one response.
   */
  readonly singleWhenTranslated?: boolean;
  /**
   * Example price, shown to operators if the price is missing, and its unit: `{ input: "…" }`,
   * "dollars per million tokens".
   */
  readonly pricingHint: readonly [price: string, of: string];
  /**
   * Typical requests for price comparison, in every measure by which providers bill. The first one
   * that a price covers is shown.
   */
  readonly priceExamples: readonly [PriceExample, ...PriceExample[]];
  /** Returns a small request for the conformance suite and its tests. */
  sampleRequest(model: string): ModelRequest<K>;
}

/** A typical request, as text and as usage. */
export interface PriceExample {
  /** "10,000 tokens in, 1,000 out" */
  readonly description: string;
  /** Units that the example uses. */
  readonly usage: Usage;
}
