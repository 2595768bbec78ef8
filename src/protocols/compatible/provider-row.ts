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
import { chatCompletions, type ChatDialect } from "../chat-completions/index.ts";
import { cohereEmbeddings } from "../cohere/index.ts";
import { completions, mistralFim } from "../completions/index.ts";
import { embeddings } from "../embeddings/index.ts";
import { images, xaiImageEdits } from "../images/index.ts";
import { messages, type MessagesDialect } from "../messages/index.ts";
import { moderations } from "../moderations/index.ts";
import { ollamaCompletions, ollamaEmbeddings } from "../ollama/index.ts";
import { rerank, voyageRerank } from "../rerank/index.ts";
import { responses, type ResponsesDialect } from "../responses/index.ts";
import { speech } from "../speech/index.ts";
import { transcriptions } from "../transcriptions/index.ts";
import type { ModelListFormat } from "./model-list.ts";

/** The part of a row that other protocols of the row depend on. */
type RowFacts = {
  readonly name: string;
  readonly protocols: { readonly "chat-completions"?: ChatDialect };
};

/**
 * The protocols that a row can use, each with the function that creates it from its dialect. This
 * is their only list. The type of a row is derived from it.
 */
export const PROTOCOLS = {
  "chat-completions": chatCompletions,
  responses: (dialect: ResponsesDialect, { protocols }: RowFacts) =>
    responses({ chatDialect: protocols["chat-completions"] ?? {}, ...dialect }),
  // A compatible provider signs its own proofs, so they are sent back only to it. Betas and token
  // counting belong to Anthropic's API and are off unless the row enables them.
  messages: (dialect: MessagesDialect, { name }: RowFacts) =>
    messages({
      signer: name,
      acceptsUnsignedThinking: true,
      betas: false,
      countsTokens: false,
      ...dialect,
    }),
  images,
  "xai-edits": xaiImageEdits,
  embeddings,
  "cohere-embed": cohereEmbeddings,
  "ollama-embed": ollamaEmbeddings,
  rerank,
  "voyage-rerank": voyageRerank,
  moderations,
  completions,
  "mistral-fim": mistralFim,
  "ollama-generate": ollamaCompletions,
  speech,
  transcriptions,
};

export type ProtocolName = keyof typeof PROTOCOLS;

type DialectOf<Create extends (...of: never) => unknown> =
  Parameters<Create> extends readonly [(infer Dialect)?, ...unknown[]]
    ? NonNullable<Dialect>
    : never;

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
  protocols: { [id in ProtocolName]?: DialectOf<(typeof PROTOCOLS)[id]> & EndpointRow };
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
