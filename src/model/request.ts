import type { CommonRequest } from "./common-request.ts";
import type {
  TranscriptItem,
  AudioChunk,
  SpeechRequest,
  TranscriptRequest,
} from "./operations/audio-requests.ts";
import type { Json, JsonObject, Opt } from "./values.ts";

/**
 * Types by operation. `request` is the type to which every protocol of the operation decodes.
 * `item` is one element of a response that is a list instead of blocks. A package adds an operation
 * by merging into this interface:
 *
 *     declare module "tollgate/plugin" {
 *       interface Operations { verdict: { request: VerdictRequest; item: Judgement } }
 *     }
 *
 * and describes it for the host in an `OperationSpec`.
 */
export interface Operations {
  /** Conversations with a chat model. */
  chat: { request: ChatRequest; item: never };
  /** Image generation and editing. */
  image: { request: ImageRequest; item: never };
  /** Embeddings of texts. */
  embedding: { request: EmbeddingRequest; item: Embedding };
  /** Ordering of documents by relevance to a query. */
  rerank: { request: RerankRequest; item: RankedDocument };
  /** Classification of content by a provider's policy. */
  moderation: { request: ModerationRequest; item: ModerationResult };
  /** Text completion without turns. */
  completion: { request: CompletionRequest; item: never };
  /** Text to speech. */
  speech: { request: SpeechRequest; item: AudioChunk };
  /** Spoken conversations over a socket. */
  realtime: { request: RealtimeRequest; item: never };
  /** Transcription and translation of audio. */
  transcript: { request: TranscriptRequest; item: TranscriptItem };
  /** Video generation. */
  video: { request: VideoRequest; item: never };
}
export type { CommonRequest } from "./common-request.ts";
/** Name of an operation: a key of `Operations`. */
export type Operation = keyof Operations & string;
/** A decoded request of an operation. */
export type ModelRequest<K extends Operation = Operation> = Operations[K]["request"];
/** One element of a response that is a list. */
export type ResponseItem<K extends Operation = Operation> = Operations[K]["item"];

/** A video to generate. The provider generates it after it has accepted the request. */
export type VideoRequest = Readonly<
  CommonRequest & {
    /** The model type. */
    operation: "video";
    /** Description of the video. */
    prompt: string;
    /** Length in seconds. Default: the provider's. */
    seconds?: Opt<number>;
    /** Width and height in pixels, such as `1280x720`. Default: the provider's. */
    size?: Opt<string>;
    /** Image with which the video begins. */
    image?: Opt<Media>;
  }
>;

/** A conversation that the model continues, independent of any protocol. */
export type ChatRequest = Readonly<
  CommonRequest & {
    /** The model type. */
    operation: "chat";
    /** Instructions before the first turn, with their block boundaries and cache marks. */
    instructions: readonly Block[];
    /** Messages of the conversation, oldest first. */
    turns: readonly Turn[];
    /** Tools that the model may call. */
    tools: readonly Tool[];
    /** Which tools the model may or must call. If `must` is false, `names` only limits the choice. */
    toolChoice?: Opt<"auto" | "none" | "required" | { names: readonly string[]; must: boolean }>;
    /** Whether the model may call several tools in one turn. Default: the provider's. */
    parallelToolCalls?: Opt<boolean>;
    /** Length, format, and style of the response. */
    output: Output;
    /** Sampling parameters. */
    sampling: Sampling;
    /** How much the model reasons, and which part of the reasoning the client receives. */
    reasoning: Reasoning;
    /** Prompt-cache options: the cache key, how long entries are retained, and whether the provider places cache marks. */
    cache?: Opt<{ key?: Opt<string>; retention?: Opt<string>; auto?: Opt<boolean> }>;
    /** Service tier that the client requests, as the provider names it. */
    tier?: Opt<string>;
    /** Key-value pairs that the client attached to the request. */
    metadata?: Opt<JsonObject>;
    /** Options for responses and conversations that the provider stores. */
    state: State;
  }
>;

/**
 * One response of a spoken conversation: the content that the model has read when the response
 * begins. It does not contain audio. It contains the transcript of audio if the provider has sent
 * one.
 */
export type RealtimeRequest = Readonly<
  CommonRequest & {
    /** The model type. */
    operation: "realtime";
    /** Instructions of the session and of the response. */
    instructions: readonly Block[];
    /** Messages of the conversation, oldest first. */
    turns: readonly Turn[];
    /** Maximum number of output tokens of the response. */
    maxTokens?: Opt<number>;
  }
>;

/** Properties of the requested response. */
export interface Output {
  /** Maximum number of output tokens of one response. */
  maxTokens?: Opt<number>;
  /** Texts that end the response. */
  stop?: Opt<readonly string[]>;
  /** Length of the response, such as `low`, `medium`, or `high`. */
  verbosity?: Opt<string>;
  /** Output types that the client requests, such as `text` and `audio`. */
  modalities?: Opt<readonly string[]>;
  /** Format of the text: plain text, any JSON, or JSON that matches a schema. */
  format?: Opt<
    /** Plain text, or any valid JSON. */
    | { type: "text" | "json" }
    | {
        /** JSON that matches `schema`. */
        type: "schema";
        /** JSON Schema that the response must match. */
        schema: JsonObject;
        /** Name of the schema. Some protocols require one. */
        name?: Opt<string>;
        /** Whether the provider enforces the schema. Default: the provider's. */
        strict?: Opt<boolean>;
        /** Description of the schema for the model. */
        description?: Opt<string>;
      }
  >;
}

/** Sampling parameters. Parameters that are not set use the model's defaults. */
export type Sampling = {
  [
    K in "temperature" | "topP" | "topK" | "presence" | "frequency" | "seed" | "n" | "logprobs"
  ]?: Opt<number>;
} & { logitBias?: Opt<JsonObject> };

/** How much the model reasons, and which part of the reasoning is returned. */
export interface Reasoning {
  /** Whether reasoning is disabled, left to the model, or controlled by `effort` or by `budget`. */
  mode: "off" | "auto" | "effort" | "budget";
  /** Effort level, such as `low` or `high`. Used if `mode` is `effort`. */
  effort?: Opt<string>;
  /** Maximum number of reasoning tokens. Used if `mode` is `budget`. */
  budget?: Opt<number>;
  /** Which part of the reasoning is returned. Default: the provider's. */
  show?: Opt<"none" | "summary" | "full">;
}

/** Options for content that the provider stores or retrieves. */
export interface State {
  /** Whether the provider stores the response. Default: the provider's. */
  store?: Opt<boolean>;
  /** ID of the stored response that this request continues. */
  previousId?: Opt<string>;
  /** ID of the stored conversation that this request continues. */
  conversation?: Opt<string>;
  /** Whether the provider processes the request in the background, to be retrieved later. */
  background?: Opt<boolean>;
}

/** Images to generate or edit. */
export type ImageRequest = Readonly<
  CommonRequest & {
    /** The model type. */
    operation: "image";
    /** Description of the image, or of the change to make. */
    prompt: string;
    /** Number of images. */
    n: number;
    /** Input images to edit or to use as references. */
    inputImages: readonly Media[];
    /** Mask of the area to edit, for the first input image. */
    mask?: Opt<Media>;
    /** Whether the client wants image data in the response or a URL. */
    responseFormat: "bytes" | "url";
    /** Size as `<width>x<height>` in pixels, or `auto`. */
    size?: Opt<string>;
    /** Quality level, as the provider names it, such as `low` or `high`. */
    quality?: Opt<string>;
    /** Background, such as `transparent` or `opaque`. */
    background?: Opt<string>;
    /** File format, such as `png`, `jpeg`, or `webp`. */
    format?: Opt<string>;
    /** Compression level of the file, 0–100. */
    compression?: Opt<number>;
    /** Seed for reproducible results. */
    seed?: Opt<number>;
    /** Number of partial images to send before the final image. Only used in a stream. */
    partialImages?: Opt<number>;
  }
>;

/** Texts to embed. */
export type EmbeddingRequest = Readonly<
  CommonRequest & {
    /** The model type. */
    operation: "embedding";
    /** Texts, or token ids of the model's own tokenizer. */
    inputs: readonly (string | readonly number[])[];
    /** Number of dimensions of each vector. */
    dimensions?: Opt<number>;
    /** Purpose of the embeddings. Some models embed queries differently from documents. */
    task?: Opt<EmbeddingTask>;
    /** Data type of the values. Default: `float`. */
    dtype?: Opt<EmbeddingDataType>;
    /** End of an overlong text that may be removed. Default: the model's behavior. */
    truncate?: Opt<"none" | "start" | "end">;
  }
>;

/** Purposes of embeddings, in one vocabulary for all providers. */
export type EmbeddingTask =
  | "query"
  | "document"
  | "classification"
  | "clustering"
  | "similarity"
  | "question"
  | "fact"
  | "code_query";

/**
 * Data type of an embedding. `binary` and `ubinary` pack eight dimensions into one signed or
 * unsigned number.
 */
export type EmbeddingDataType = "float" | "int8" | "uint8" | "binary" | "ubinary";

/**
 * One embedding of a response. If it is a string, it is base64 of little-endian 32-bit floats, or
 * of one byte per number for other types.
 */
export interface Embedding {
  /** Numbers of the vector, or their bytes in base64. */
  readonly values: readonly number[] | string;
  /** Data type of the values. Default: `float`. */
  readonly dtype?: Opt<EmbeddingDataType>;
}

/** Documents to order by relevance to a query, the most relevant first. */
export type RerankRequest = Readonly<
  CommonRequest & {
    /** The model type. */
    operation: "rerank";
    /** Text that the documents are compared with. */
    query: string;
    /** Texts, or objects with a text or with other fields that the model reads. */
    documents: readonly (string | JsonObject)[];
    /** Number of documents to return. Default: all. */
    topN?: Opt<number>;
    /** Whether each result repeats its document. */
    returnDocuments?: Opt<boolean>;
    /** Maximum number of tokens that are read per document. */
    maxTokensPerDocument?: Opt<number>;
    /** Whether an overlong document may be truncated. Default: the model's behavior. */
    truncate?: Opt<boolean>;
  }
>;

/** A document of the request, by its position, with its relevance. */
export interface RankedDocument {
  /** Zero-based position of the document in the request. */
  readonly index: number;
  /** Relevance to the query. Higher is more relevant. The scale depends on the provider. */
  readonly score: number;
}

/**
 * Content to classify, as the client sent it: a text, several texts, or parts with text and images.
 */
export type ModerationRequest = Readonly<CommonRequest & { operation: "moderation"; input: Json }>;

/**
 * A moderation result in the provider's own format, because the categories of two providers differ.
 */
export interface ModerationResult {
  /** The result for one input, as the provider returned it. */
  readonly raw: JsonObject;
}

/**
 * Text to continue. Several prompts produce one response each. Only the client's own protocol can
 * encode several responses.
 */
export type CompletionRequest = Readonly<
  CommonRequest & {
    /** The model type. */
    operation: "completion";
    /** Texts, or token ids of the model's own tokenizer. */
    prompts: readonly (string | readonly number[])[];
    /** Text after the insertion point, for models that fill in the middle. */
    suffix?: Opt<string>;
    /** Maximum number of output tokens. */
    maxTokens?: Opt<number>;
    /** Texts that end the response. */
    stop?: Opt<readonly string[]>;
    /** Sampling parameters. */
    sampling: Pick<Sampling, "temperature" | "topP" | "seed" | "n" | "presence" | "frequency">;
  }
>;

/** One message of a conversation. */
export interface Turn {
  /** Author of the message. */
  role: "user" | "assistant" | "tool" | "system" | "developer";
  /** Content of the message, in order. */
  blocks: readonly Block[];
  /** Name of the participant, as the client sent it. */
  name?: Opt<string>;
  /** The `phase` of an assistant message in the Responses API. */
  phase?: Opt<string>;
}

/**
 * A tool that the model may call: a tool of the client (`function`, `custom`) or of the provider
 * (`hosted`).
 */
export interface Tool {
  /** Whether the client runs the tool (`function`, `custom`) or the provider does (`hosted`). */
  type: "function" | "custom" | "hosted";
  /** Name that the model uses to call the tool. */
  name: string;
  /** Description for the model. */
  description?: Opt<string>;
  /** JSON Schema of the arguments. */
  schema?: Opt<JsonObject>;
  /** Whether the provider enforces the schema. Default: the provider's. */
  strict?: Opt<boolean>;
  /** Prompt-cache mark, such as `cache_control`, as the client sent it. */
  cache?: Opt<Json>;
  /** ID of the protocol that a hosted tool belongs to. */
  origin?: Opt<string>;
  /** Declaration of a hosted tool, as the client sent it. */
  raw?: Opt<Json>;
}

/**
 * Media content. The bytes stay in the form in which they arrived, so that base64 is not decoded
 * and encoded again.
 */
export type Media = { mime?: Opt<string> } & (
  | {
      /** Bytes in base64, as the client sent them. */
      base64: string;
    }
  /** Bytes of an uploaded file. */
  | { bytes: Buffer }
  /** URL that the provider fetches. */
  | { url: string }
  /** ID of a file that a provider stores, and the ID of the protocol with which it was uploaded. */
  | { fileId: string; origin: string }
);

/**
 * Content that a provider signed or encrypted. It cannot be read by any other party and is sent
 * back only to its origin.
 */
export interface Proof {
  /** ID of the protocol that can read the proof. */
  origin: string;
  /** Form of the proof within its protocol, such as `signature`, `redacted`, or `encrypted`. */
  kind: string;
  /** The signature or the encrypted content, as the provider sent it. */
  data: string;
  /** ID of the provider's item that contains the proof. */
  itemId?: Opt<string>;
  /** Model that produced the proof, as the provider names it. */
  model?: Opt<string>;
}

/**
 * A part of a message. Every type of block can have a `proof`, because some APIs sign reasoning,
 * some sign calls, and some sign text.
 */
export type Block = { cache?: Opt<Json>; proof?: Opt<Proof> } & (
  | {
      /** Text of a message. */
      type: "text";
      /** The text. */
      text: string;
      /** Sources of the text, as the provider returned them. */
      citations?: Opt<readonly Json[]>;
      /** Log probabilities, one entry per token, if requested. */
      logprobs?: Opt<readonly Json[]>;
    }
  /** The model's explanation of why it refuses. */
  | { type: "refusal"; text: string; logprobs?: Opt<readonly Json[]> }
  | {
      /** Reasoning of the model. */
      type: "reasoning";
      /** The full reasoning, if the provider returns it. */
      text?: Opt<string>;
      /** Paragraphs of a summary of the reasoning. */
      summary?: Opt<readonly string[]>;
    }
  | {
      /** A file for the model, or one that it made. */
      type: "image" | "audio" | "video" | "document";
      /** Location of the bytes: inline, at a URL, or stored with a provider. */
      media: Media;
      /** Resolution at which the model reads an image, such as `low` or `high`. */
      detail?: Opt<string>;
      /** Title of a document. */
      title?: Opt<string>;
      /** Information about a document that the model reads but does not cite. */
      context?: Opt<string>;
      /** Whether the model may cite the document. */
      cite?: Opt<boolean>;
      /** Note from the provider, such as the revised prompt. */
      note?: Opt<string>;
    }
  | {
      /** A call of a client's tool by the model. */
      type: "call";
      /** ID that the result refers to. */
      id: string;
      /** Name of the tool. */
      name: string;
      /** Whether the arguments are JSON (`function`) or free text (`custom`). */
      tool: "function" | "custom";
      /** Arguments exactly as the model wrote them. */
      args: string;
    }
  | {
      /** The result of a tool call, from the client. */
      type: "result";
      /** ID of the call. */
      callId: string;
      /** Name of the tool, in protocols that repeat it. */
      name?: Opt<string>;
      /** Content of the result. */
      blocks: readonly Block[];
      /** Whether the tool failed. */
      isError: boolean;
    }
  /**
   * Content of hosted tools, and any type that this version does not know. `text` is the part that
   * other protocols may show.
   */
  | { type: "opaque"; origin: string; raw: Json; text?: Opt<string> }
);
