import type { CommonRequest } from "./common-request.ts";
import type { Passage, Sound, SpeechRequest, TranscriptRequest } from "./sound.ts";
import type { Json, JsonObject, Opt } from "./values.ts";

/**
 * What a model can be asked for, by kind. `request` is what every protocol of that kind decodes to, and `item` one whole thing
 * of its answer, where answers are lists of things and not blocks. A package adds a kind by merging into this interface:
 *
 *     declare module "tollgate/plugin" {
 *       interface Works { verdict: { request: VerdictRequest; item: Judgement } }
 *     }
 *
 * and says in a `Work` what the host must know of it.
 */
export interface Works {
  chat: { request: ChatRequest; item: never };
  image: { request: ImageRequest; item: never };
  embedding: { request: EmbeddingRequest; item: Vector };
  rerank: { request: RerankRequest; item: Ranking };
  moderation: { request: ModerationRequest; item: Judgement };
  completion: { request: CompletionRequest; item: never };
  speech: { request: SpeechRequest; item: Sound };
  transcript: { request: TranscriptRequest; item: Passage };
}
export type { CommonRequest } from "./common-request.ts";
/** A kind of work: the key of its types in `Works`. */
export type Kind = keyof Works & string;
/** A decoded request of that kind. */
export type ModelRequest<K extends Kind = Kind> = Works[K]["request"];
/** One whole thing of an answer of that kind. */
export type WorkItem<K extends Kind = Kind> = Works[K]["item"];

/** A conversation to be continued, in words that no protocol owns. */
export type ChatRequest = Readonly<
  CommonRequest & {
    kind: "chat";
    /** What stands before the first turn, with its boundaries and cache marks. */
    instructions: readonly Block[];
    turns: readonly Turn[];
    tools: readonly Tool[];
    toolChoice?: Opt<"auto" | "none" | "required" | { names: readonly string[]; must: boolean }>;
    parallel?: Opt<boolean>;
    output: Output;
    sampling: Sampling;
    reasoning: Reasoning;
    cache?: Opt<{ key?: Opt<string>; retention?: Opt<string>; auto?: Opt<boolean> }>;
    tier?: Opt<string>;
    metadata?: Opt<JsonObject>;
    state: State;
  }
>;

/** What the answer should be like. */
export interface Output {
  maxTokens?: Opt<number>;
  stop?: Opt<readonly string[]>;
  verbosity?: Opt<string>;
  modalities?: Opt<readonly string[]>;
  format?: Opt<
    | { type: "text" | "json" }
    | {
        type: "schema";
        schema: JsonObject;
        name?: Opt<string>;
        strict?: Opt<boolean>;
        description?: Opt<string>;
      }
  >;
}

/** How tokens are chosen. Absent members are left to the model. */
export type Sampling = {
  [
    K in "temperature" | "topP" | "topK" | "presence" | "frequency" | "seed" | "n" | "logprobs"
  ]?: Opt<number>;
} & { logitBias?: Opt<JsonObject> };

/** How much the model should think, and how much of that is shown. */
export interface Reasoning {
  mode: "off" | "auto" | "effort" | "budget";
  effort?: Opt<string>;
  budget?: Opt<number>;
  show?: Opt<"none" | "summary" | "full">;
}

/** What the client asks the provider to keep or to find again. */
export interface State {
  store?: Opt<boolean>;
  previousId?: Opt<string>;
  conversation?: Opt<string>;
  background?: Opt<boolean>;
}

/** Pictures to be made or edited. */
export type ImageRequest = Readonly<
  CommonRequest & {
    kind: "image";
    prompt: string;
    n: number;
    refs: readonly Media[];
    mask?: Opt<Media>;
    want: "bytes" | "url";
    size?: Opt<string>;
    quality?: Opt<string>;
    background?: Opt<string>;
    format?: Opt<string>;
    compression?: Opt<number>;
    seed?: Opt<number>;
    partials?: Opt<number>;
  }
>;

/** Texts to be turned into vectors. */
export type EmbeddingRequest = Readonly<
  CommonRequest & {
    kind: "embedding";
    /** Texts, or the ids of their tokens by the model's own tokenizer. */
    inputs: readonly (string | readonly number[])[];
    /** How many numbers each vector shall have. */
    dimensions?: Opt<number>;
    /** What the vectors are for: some models make others of a question than of what answers it. */
    task?: Opt<EmbeddingTask>;
    /** What the numbers are. Absent: float. */
    dtype?: Opt<VectorType>;
    /** Which end of a text that is too long may be left out. Absent: as the model has it. */
    truncate?: Opt<"none" | "start" | "end">;
  }
>;

/** The vendors' words for what vectors are for, as one vocabulary. */
export type EmbeddingTask =
  | "query"
  | "document"
  | "classification"
  | "clustering"
  | "similarity"
  | "question"
  | "fact"
  | "code_query";

/** binary and ubinary: eight dimensions in one number, signed or not. */
export type VectorType = "float" | "int8" | "uint8" | "binary" | "ubinary";

/** One vector of an answer. A text is base64: little-endian floats of 32 bits, or a byte for each number of another type. */
export interface Vector {
  readonly values: readonly number[] | string;
  /** Absent: float. */
  readonly dtype?: Opt<VectorType>;
}

/** Documents to be put in order, the nearest to a query first. */
export type RerankRequest = Readonly<
  CommonRequest & {
    kind: "rerank";
    query: string;
    /** Texts, or objects with a text or with what else the model reads. */
    documents: readonly (string | JsonObject)[];
    /** How many of them are wanted. Absent: all. */
    most?: Opt<number>;
    /** Whether each row of the answer repeats its document. */
    returned?: Opt<boolean>;
    /** Tokens of one document that are read at most. */
    perDocument?: Opt<number>;
    /** Whether a document that is too long may be cut. Absent: as the model has it. */
    truncate?: Opt<boolean>;
  }
>;

/** A document of a request, by its place there, and how near it is. */
export interface Ranking {
  readonly index: number;
  readonly score: number;
}

/** Content to be judged, as the client wrote it: a text, several, or parts with text and pictures. */
export type ModerationRequest = Readonly<CommonRequest & { kind: "moderation"; input: Json }>;

/** A verdict in its vendor's own words: categories of two vendors are not the same. */
export interface Judgement {
  readonly said: JsonObject;
}

/** A text that goes on, and where it shall lead. Several prompts have as many answers, which no codec but their own writes. */
export type CompletionRequest = Readonly<
  CommonRequest & {
    kind: "completion";
    /** Texts, or the ids of their tokens by the model's own tokenizer. */
    prompts: readonly (string | readonly number[])[];
    suffix?: Opt<string>;
    maxTokens?: Opt<number>;
    stop?: Opt<readonly string[]>;
    sampling: Pick<Sampling, "temperature" | "topP" | "seed" | "n" | "presence" | "frequency">;
  }
>;

/** One message of a conversation. */
export interface Turn {
  role: "user" | "assistant" | "tool" | "system" | "developer";
  blocks: readonly Block[];
  name?: Opt<string>;
  phase?: Opt<string>;
}

/** A tool that the model may call: the client's own (function, custom) or the provider's (hosted). */
export interface Tool {
  type: "function" | "custom" | "hosted";
  name: string;
  description?: Opt<string>;
  schema?: Opt<JsonObject>;
  strict?: Opt<boolean>;
  cache?: Opt<Json>;
  /** For a hosted tool: whose it is, and its declaration as it came. */
  origin?: Opt<string>;
  raw?: Opt<Json>;
}

/** Bytes stay in the form they came in: base64 is not decoded only to be encoded again. */
export type Media = { mime?: Opt<string> } & (
  | { base64: string }
  | { bytes: Buffer }
  | { url: string }
  | { fileId: string; origin: string }
);

/** What a provider signed or encrypted, opaque to all others; it goes back to its origin only. */
export interface Proof {
  origin: string;
  kind: string;
  data: string;
  itemId?: Opt<string>;
  model?: Opt<string>;
}

/** `proof` stands on every kind: some wires sign reasoning, some sign calls, some sign text. */
export type Block = { cache?: Opt<Json>; proof?: Opt<Proof> } & (
  | {
      type: "text";
      text: string;
      citations?: Opt<readonly Json[]>;
      /** One entry a token, where they were asked for. */
      logprobs?: Opt<readonly Json[]>;
    }
  | { type: "refusal"; text: string; logprobs?: Opt<readonly Json[]> }
  | {
      type: "reasoning";
      text?: Opt<string>;
      summary?: Opt<readonly string[]>;
    }
  | {
      type: "image" | "audio" | "video" | "document";
      media: Media;
      detail?: Opt<string>;
      title?: Opt<string>;
      context?: Opt<string>;
      cite?: Opt<boolean>;
      /** What its maker says of it: the prompt as it was revised. */
      note?: Opt<string>;
    }
  | {
      type: "call";
      id: string;
      name: string;
      tool: "function" | "custom";
      /** The model's own string, byte for byte. */
      args: string;
    }
  | {
      type: "result";
      callId: string;
      name?: Opt<string>;
      blocks: readonly Block[];
      isError: boolean;
    }
  /** Hosted tools, and whatever is newer than us. `text` is what another protocol may show of it. */
  | { type: "opaque"; origin: string; raw: Json; text?: Opt<string> }
);
