// Describes a provider as data: its name, address, protocols, and differences. A row contains no
// code, so adding a provider means adding an entry to a list.
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

/** Settings of one protocol that differ from the rest of the row. */
export interface EndpointRow {
  /**
   * Base URL. Relative to the row's base, for example "../anthropic/v1", or absolute if it begins
   * with https://.
   */
  base?: string;
  /** Name of the header that contains the bare key. Default: the row's `auth`. */
  header?: string;
  /** Headers that are sent with every request to this endpoint. */
  headers?: HeadersOut;
  /**
   * Models that this endpoint serves. A pattern may contain one `*`, which matches any text.
   * Default: all models.
   */
  servedModels?: readonly string[];
  /**
   * Whether the endpoint streams. Default: `on_request`, or `never` for images, which hardly any
   * backend streams, and for other operations that return one piece.
   */
  streams?: "on_request" | "always" | "never";
}

export interface ProviderRow {
  /** Name that `use:` refers to, in lower case with dashes. */
  name: string;
  summary: string;
  /** Base URL without the protocol's own path. If unset, the operator must set `base_url`. */
  base?: string;
  /**
   * Protocols of the provider. If a request has to be translated, earlier protocols are preferred.
   */
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
  /**
   * Header that contains the key, and the text before the key. Default: `Authorization: Bearer`.
   */
  auth?: { header: string; prefix?: string };
  /**
   * Whether a key is required. `optional`: a self-hosted server may not require one. Default:
   * `required`.
   */
  keyRequirement?: "required" | "optional";
  headers?: HeadersOut;
  /**
   * Body field, header, or both that identify the conversation of a request, on every endpoint that
   * generates text token by token.
   */
  sessionAffinity?: ProtocolEndpoint["sessionAffinity"];
  /**
   * Format of the model list. false: the provider has none. Default: OpenAI's format at `models`.
   */
  models?: ModelListFormat | false;
  can?: FeatureSupport;
  dataPolicy?: DataPolicy;
  facts?: Facts;
  /**
   * Default: `experimental`, which means that the row was written from documentation and not
   * tested.
   */
  stability?: Stability;
  /**
   * Parts of the row that rely on second-hand information, for example "responses" or "limits".
   * Default: none, all parts come from the provider's documentation.
   */
  unverified?: readonly string[];
}
