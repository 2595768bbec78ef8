import type { Operation, ModelRequest } from "../request.ts";
import type { Unit, Usage } from "../usage.ts";
import type { Opt } from "../values.ts";

/** What of a request decides how much it can come to. A survey says it of a body, `Work.extent` of a decoded request. */
export interface CostFactors {
  /** Tokens of one answer, as the client bounds them. */
  maxOutput?: Opt<number>;
  /** Answers, or pictures. */
  n?: Opt<number>;
  /** Image size that the client requests, such as `1024x1024`. */
  size?: Opt<string>;
  /** Image quality that the client requests. */
  quality?: Opt<string>;
  /**
   * What the request alone decides: characters to be spoken, searches to be made. Where the price has lines for them they are
   * billed, unless upstream reports the same unit; a bill made of them alone is exact.
   */
  exactUsage?: Opt<Usage>;
  /** What the request makes likely of a unit that `counts` does not have: a bill from it is an estimate. */
  expectedUsage?: Opt<Usage>;
  /** What the request can come to at most, where `counts` is no bound: a hard budget holds it. */
  maxUsage?: Opt<Usage>;
  /**
   * The path of a field that decides how much the request costs and that cannot be read: a number written in an unusual form, a list.
   * A request under a hard budget is rejected for it.
   */
  unreadableField?: Opt<string>;
}

/** What a call may come to, as the host worked it out from what leaves. */
export interface UsageEstimateInput {
  /** The sum is a promise that the bill must not exceed; otherwise it is what is likely. */
  isWorstCase: boolean;
  /** Tokens: a bound when `worst`, otherwise an estimate from the bytes. */
  input: number;
  /** Tokens of one answer, for work that is written; otherwise 0. */
  output: number;
  /** Number of answers or images. */
  n: number;
  /** How often tools that upstream runs may run. */
  toolRuns: number;
  /** Units that providers bill such tools by. */
  tools: readonly Unit[];
  /** Pictures or sound may go in or come out. */
  hasMedia: boolean;
  /** Image size that the client requests. */
  size?: Opt<string>;
  /** Units that the request alone determines. */
  exactUsage: Usage;
  /** Expected number of units that `counts` lacks. */
  expectedUsage: Usage;
  /** Upper bounds of units that `counts` does not bound. */
  maxUsage: Usage;
  /** Tokens of one answer that the model can make, where the catalog has it. */
  modelMaxOutput?: Opt<number>;
  /** Pixels of the largest picture that the model draws, where the catalog has it. */
  maxPixels?: Opt<number>;
}

/** So many of a unit. Of several units the one that costs most under the price counts: what upstream does is not known. */
export interface UsageEstimate {
  /** Units that the work may be billed in. */
  units: readonly [Unit, ...Unit[]];
  /** Number of units. */
  count: number;
  /** Nothing where the price has no line for it. */
  optional?: Opt<boolean>;
  /** Nothing that is sent bounds this count: a hard budget rejects the request, with this field and this advice. */
  unbounded?: Opt<{ readonly param: string; readonly advice: string }>;
}

/** What was seen of an answer that reports too little. */
export interface ObservedUsage {
  /** What upstream reported. */
  usage: Usage;
  /** Tokens that were read, by the estimate that the hold was made from. */
  inputTokens: number;
  /** Tokens that were written, guessed from the text that came by. */
  outputTokens: number;
  /** Number of answers or images that the client requested. */
  n: number;
  /** What the request made likely. */
  expectedUsage: Usage;
}

/**
 * What the host must know of a kind to hold, meter, list and deliver it. It stands on each protocol of that kind; the
 * frontend's is asked for a request. Pure data and pure functions: they are called for each request, and a throw in one
 * fails that request with a 500.
 */
export interface OperationSpec<K extends Operation = Operation> {
  /** A word of letters, digits and dashes; the key in `Works`. */
  readonly name: K;
  /** With its article, for people: "an embedding model". */
  readonly noun: string;
  /** What comes out, as lists of models name it: "text", "image", "embeddings". */
  readonly outputModality: string;
  /**
   * Its models are asked for only where a list, shipped facts or the operator have their exact names. Otherwise a name that
   * no list has is forwarded as this kind, and upstream decides; that holds for chat alone, which is what an unknown name is
   * taken to be.
   */
  readonly requiresCatalogEntry: boolean;
  /**
   * Its answers are written token by token up to a bound. A hard budget sets that bound upstream, and refuses an endpoint that
   * cannot; an answer that broke off is presumed to have been written on until upstream noticed.
   */
  readonly generatesTokens: boolean;
  /** A report is complete with all units of one of these. */
  readonly completeUnitSets: readonly (readonly Unit[])[];
  /** Called for each hold: what it can come to, by every measure in use. The first that the price has lines for is held. */
  estimateUsage(of: UsageEstimateInput): readonly (readonly UsageEstimate[])[];
  /** Called when an answer is over or broke off and its reports are not whole: what it is taken to have used. */
  estimateMissingUsage(of: ObservedUsage): Usage;
  /**
   * Called where a request leaves as it was decoded or as a rewrite hook left it: what a survey of it would say. Absent: the
   * client's own survey holds.
   */
  analyzeCost?(request: ModelRequest<K>): CostFactors;
  /**
   * The same request with this bound of one answer. A hard budget uses it for an endpoint that sends by itself, and refuses such an
   * endpoint where it is absent and the work is written.
   */
  withOutputCap?(request: ModelRequest<K>, tokens: number): ModelRequest<K>;
  /** Bytes of one answer that is held, where `bounds.response` is no measure. */
  readonly maxResponseBytes?: number;
  /**
   * What two models make cannot be told from each other and must not be mixed: vectors of one mean nothing to the other. A name
   * that leads to different models of such a kind is an error of the config. Looked at when a generation is built. Absent: they
   * may stand in for each other.
   */
  readonly outputIsModelSpecific?: boolean;
  /** Several answers to one request (`n`) come only in the client's own protocol: no codec writes more than one. */
  readonly singleWhenTranslated?: boolean;
  /** What operators write for a price that is missing, and of what: `{ input: "…" }`, "dollars per million tokens". */
  readonly pricingHint: readonly [price: string, of: string];
  /** Plain requests whose price people compare, by every measure in use. The first that a price covers is shown. */
  readonly priceExamples: readonly [PriceExample, ...PriceExample[]];
  /** A small request, which the conformance suite and its tests ask with. */
  sampleRequest(model: string): ModelRequest<K>;
}

/** A plain request, in words and in counts. */
export interface PriceExample {
  /** "10,000 tokens in, 1,000 out" */
  readonly description: string;
  /** Units that the example uses. */
  readonly usage: Usage;
}
