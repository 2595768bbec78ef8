// A provider as data: its name, where it is, what it speaks, and how it differs. No code, so that adding one is a line
// in a list and reading one is reading a fact.
import type {
  FeatureSupport,
  DataPolicy,
  Facts,
  HeadersOut,
  Stability,
  ProtocolEndpoint,
} from "../../plugin/index.ts";
import type { ChatDialect } from "../chat-completions/index.ts";
import type { CompletionDialect } from "../completions/index.ts";
import type { EmbeddingDialect } from "../embeddings/index.ts";
import type { ImageDialect } from "../images/index.ts";
import type { MessagesDialect } from "../messages/index.ts";
import type { ModerationDialect } from "../moderations/index.ts";
import type { RerankDialect } from "../rerank/index.ts";
import type { ResponsesDialect } from "../responses/index.ts";
import type { SpeechDialect } from "../speech/index.ts";
import type { TranscriptDialect } from "../transcriptions/index.ts";
import type { ModelListFormat } from "./model-list.ts";

/** Where one protocol is spoken, when that is not where the row says. */
export interface EndpointRow {
  /** Relative to the row's base: "../anthropic/v1". An address of its own when it begins with https://. */
  base?: string;
  /** The header that carries the key, bare. Absent: as the row says. */
  header?: string;
  /** Sent with every request to this endpoint. */
  headers?: HeadersOut;
  /** Models that are served here; absent: all. One `*` in each stands for anything. */
  servedModels?: readonly string[];
  /** Whether it streams. Absent: on_request; images, where hardly any host does, and whatever comes in one piece: never. */
  streams?: "on_request" | "always" | "never";
}

export interface ProviderRow {
  /** Lower case, dashes: what `use:` says. */
  name: string;
  summary: string;
  /** Where the API is, up to but without the protocol's own path. Absent: `base_url` must be given. */
  base?: string;
  /** In the order in which they are preferred when a request has to be translated. */
  protocols: {
    "chat-completions"?: ChatDialect & EndpointRow;
    responses?: ResponsesDialect & EndpointRow;
    messages?: MessagesDialect & EndpointRow;
    images?: ImageDialect & EndpointRow;
    "xai-edits"?: ImageDialect & EndpointRow;
    embeddings?: EmbeddingDialect & EndpointRow;
    "cohere-embed"?: EndpointRow;
    "ollama-embed"?: EndpointRow;
    rerank?: RerankDialect & EndpointRow;
    "voyage-rerank"?: EndpointRow;
    moderations?: ModerationDialect & EndpointRow;
    completions?: CompletionDialect & EndpointRow;
    "mistral-fim"?: EndpointRow;
    "ollama-generate"?: EndpointRow;
    speech?: SpeechDialect & EndpointRow;
    transcriptions?: TranscriptDialect & EndpointRow;
  };
  /** The header that carries the key, and what stands before the key. Absent: Authorization: Bearer. */
  auth?: { header: string; prefix?: string };
  /** required: no request is answered without one. optional: the operator's own server may ask for none. Absent: required. */
  keyRequirement?: "required" | "optional";
  headers?: HeadersOut;
  /** Where it is told which requests are of one conversation, on every endpoint that chats. */
  sessionAffinity?: ProtocolEndpoint["sessionAffinity"];
  /** How it lists its models; false: it does not. Absent: as OpenAI does, at `models`. */
  models?: ModelListFormat | false;
  can?: FeatureSupport;
  dataPolicy?: DataPolicy;
  facts?: Facts;
  /** Absent: experimental, which is to say that what stands here was read, not tried. */
  stability?: Stability;
  /** What stands here on second-hand knowledge: "responses", "limits". Absent: all of it was read at the source. */
  unverified?: readonly string[];
}
