// The table of members that refer to something outside the request: state that a provider stores,
// additional models, provider accounts, and prompt cache settings. A member has the same meaning in
// every protocol and body, whichever vendor documents it. A body that is sent in one protocol can
// contain members of another.
import type { JsonObject, StateReferenceRule } from "../../plugin/index.ts";
import { isTruthyFlag, asObject } from "../json-values.ts";

const typeOf = (of: JsonObject): string =>
  typeof of["type"] === "string" ? (of["type"] as string) : "";

/**
 * Whether an object is the record of a hosted tool call in the conversation. The provider does not
 * look anything up for such a record.
 */
const isRecord = (of: JsonObject): boolean => typeOf(of).endsWith("_call");

const SEND_FILE = "Send the file's bytes or its URL.";
const SEND_HISTORY = "Send the whole conversation.";

const file: StateReferenceRule = {
  feature: "state.file",
  effect: "refers",
  relayPolicy: "passthrough",
  alternative: SEND_FILE,
};
const address: StateReferenceRule = {
  ...file,
  matches: (value) => typeof value === "string" && isStoredFile(value),
};
const asksContainer = 'Use container: { "type": "auto" }, or omit the ID.';
const conversation: StateReferenceRule = {
  feature: "state.conversation",
  effect: "refers",
  relayPolicy: "never",
  alternative: SEND_HISTORY,
};
const thread: StateReferenceRule = {
  feature: "state.thread",
  effect: "refers",
  relayPolicy: "passthrough",
  alternative: SEND_HISTORY,
  // This code makes the SDK's tool runner send its whole history.
  code: "thread_unsupported_request",
  message: () => "Message threads are not stored here. Send the whole history.",
};
const cached: StateReferenceRule = {
  feature: "state.cached_content",
  effect: "refers",
  relayPolicy: "passthrough",
  alternative: "Send the content itself.",
};
const store: StateReferenceRule = {
  feature: "state.vector_store",
  effect: "refers",
  relayPolicy: "passthrough",
  alternative: "Send the documents themselves.",
};

/** Rules by member name. They apply at any depth, except inside the client's own content. */
export const STATE_RULES: { readonly [word: string]: StateReferenceRule } = {
  previous_response_id: {
    feature: "state.previous_response_id",
    effect: "refers",
    relayPolicy: "bound",
    alternative: "Send the whole conversation in input.",
    code: "previous_response_not_found",
    // The message is the same for every ID that cannot be continued, whether or not it ever
    // existed. Clients recognize the code.
    message: (id) =>
      `Previous response with id '${typeof id === "string" ? id : ""}' not found. Send the whole conversation in input instead.`,
  },
  comparison_response_id: {
    feature: "state.previous_response_id",
    effect: "refers",
    relayPolicy: "passthrough",
    alternative: "Omit it.",
  },
  // With this member, the provider reports how a prompt differs from an earlier prompt, which may
  // belong to another key.
  previous_message_id: {
    feature: "state.previous_message_id",
    effect: "refers",
    relayPolicy: "passthrough",
    alternative: "Omit it.",
  },
  conversation,
  conversation_id: conversation,
  thread,
  thread_id: thread,
  background: {
    feature: "state.background",
    effect: "refers",
    relayPolicy: "never",
    alternative: "Use stream: true and wait for the response.",
    matches: isTruthyFlag,
  },
  deferred: {
    feature: "state.deferred",
    effect: "stores",
    relayPolicy: "passthrough",
    alternative: "Wait for the response.",
    matches: isTruthyFlag,
  },
  store: {
    feature: "state.store",
    effect: "stores",
    relayPolicy: "passthrough",
    alternative: "Omit it.",
    matches: isTruthyFlag,
  },
  prompt: {
    feature: "state.prompt",
    effect: "refers",
    relayPolicy: "passthrough",
    alternative: "Send the prompt's text in instructions and input.",
    matches: (value) => asObject(value) !== undefined,
  },
  prompt_id: {
    feature: "state.prompt",
    effect: "refers",
    relayPolicy: "passthrough",
    alternative: "Send the prompt's text in instructions and input.",
  },
  container: {
    feature: "state.container",
    effect: (value) => (typeof value === "string" || asObject(value)?.["id"] ? "refers" : "stores"),
    relayPolicy: "passthrough",
    alternative: asksContainer,
  },
  container_id: {
    feature: "state.container",
    effect: "refers",
    relayPolicy: "passthrough",
    alternative: asksContainer,
    matches: (_value, holder) => !isRecord(holder),
  },
  skill_id: {
    feature: "state.skill",
    effect: "refers",
    relayPolicy: "passthrough",
    alternative: "Send the skill's text as instructions.",
    // The vendor's own skills are available to all clients.
    matches: (_value, holder) => typeOf(holder) !== "anthropic",
  },
  file_id: file,
  file_ids: file,
  fileUri: address,
  file_uri: address,
  vector_store_ids: store,
  collection_ids: store,
  fileSearchStoreNames: store,
  file_search_store_names: store,
  cachedContent: cached,
  cached_content: cached,
  continuationToken: { ...cached, feature: "state.continuation" },
  continuation_token: { ...cached, feature: "state.continuation" },
  audio: {
    feature: "state.audio",
    effect: "refers",
    relayPolicy: "passthrough",
    alternative: "Send the transcript as text.",
    matches: (value) => asObject(value)?.["id"] != null,
    member: "id",
  },
};

/**
 * Marks that set what a prompt cache stores. The lifetime is inside the mark. Default: 5 minutes.
 */
export const CACHE_MARKS: ReadonlySet<string> = new Set([
  "cache_control",
  "cacheControl",
  "cachePoint",
  "cache_point",
  "prompt_cache_breakpoint",
]);

/** Fields that control a prompt cache as a whole. Removing them does not change the response. */
export const CACHE_HINTS: readonly string[] = [
  "prompt_cache_key",
  "prompt_cache_retention",
  "prompt_cache_options",
];

/**
 * Members that name additional models: as a string, in a list of strings, or in a list of objects
 * with a `model` member.
 */
export const MODEL_FIELDS: ReadonlySet<string> = new Set([
  "allowed_models",
  "fallback",
  "fallback_model",
  "fallback_models",
  "fallbacks",
  "model",
  "models",
]);

/**
 * Members that name a stored preset. A preset refers to settings in the provider account, which can
 * include models.
 */
export const PRESET_FIELDS: ReadonlySet<string> = new Set(["preset"]);

/**
 * Members that choose the provider account and its spending. Only the operator may choose them,
 * never a client with a gateway key.
 */
export const ACCOUNT_FIELDS: readonly string[] = [
  "billing_policy",
  "fallback_credit_token",
  "user_profile_id",
  "workspace_id",
];

/** Members by which a body could choose its destination or the provider account. */
export const ROUTING_FIELDS: readonly string[] = [
  "api_base",
  "api_key",
  "api_type",
  "api_version",
  "base_url",
  "custom_llm_provider",
  "extra_body",
  "extra_headers",
  "organization",
  "proxy",
];

/**
 * Members that contain the client's own content or the record of a response. Providers do not
 * interpret their contents, so the search skips them.
 */
export const FREE_TEXT_FIELDS: ReadonlySet<string> = new Set([
  "_meta",
  "annotations",
  "args",
  "arguments",
  "attributes",
  "chat_template_kwargs",
  "citations",
  "client_metadata",
  "env",
  "headers",
  "inputSchema",
  "input_examples",
  "input_schema",
  "labels",
  "logit_bias",
  "logprobs",
  "metadata",
  "output_schema",
  "parameters",
  "parametersJsonSchema",
  "properties",
  "response",
  "responseJsonSchema",
  "responseSchema",
  "results",
  "schema",
  "variables",
]);

// Detects URLs of files that belong to a provider account. Google serves uploaded files only to the
// account that uploaded them.

/** Host under which Google serves uploaded files. */
const GOOGLE_STORAGE_HOST = /(?:^|\.)googleapis\.com\.*$/i;

/** Schemes that do not depend on an account: web URLs and data URLs. */
const PUBLIC_SCHEMES: ReadonlySet<string> = new Set(["https:", "http:", "data:"]);

/**
 * A URL without escapes, user names, or unusual characters before its path. Almost all URLs match
 * and need no parser.
 */
const PLAIN_URL = /^https?:\/\/([a-z\d.-]{1,253})(?::\d{1,5})?(?:[/?#]|$)/i;

/**
 * Maximum number of characters that are parsed, because parsing is slow. Signed URLs have about
 * half as many.
 */
const MAX_PARSED = 2_048;

/**
 * The `files` path segment of uploads, in which any letter can be percent-encoded, or an encoded
 * percent sign.
 */
const UPLOAD_PATH =
  /(?:^|\/|%2f)(?:f|%[46]6)(?:i|%[46]9)(?:l|%[46]c)(?:e|%[46]5)(?:s|%[57]3)(?:\/|%2f|$)|%25/i;

/**
 * Returns whether a URL refers to a file in a provider account. The check uses the parsed URL, so
 * letter case, escapes, a dot after the host, and a user name before the host make no difference.
 *
 * Text that is not a URL can be a bare file name, so it counts as stored. A URL with a scheme that
 * is not fetched from the open web counts as stored too. A Google URL counts as stored if its path
 * has double escapes or if the URL is longer than the parsed part.
 */
export function isStoredFile(url: string): boolean {
  const host = PLAIN_URL.exec(url)?.[1];
  if (host !== undefined && !GOOGLE_STORAGE_HOST.test(host)) return false;
  const isCut = url.length > MAX_PARSED;
  const at = URL.parse(isCut ? url.slice(0, MAX_PARSED) : url);
  if (!at || !PUBLIC_SCHEMES.has(at.protocol)) return true;
  if (at.protocol === "data:") return false;
  // If the URL was cut inside the host, the rest of the host is unknown.
  if (!GOOGLE_STORAGE_HOST.test(at.hostname)) return isCut && at.pathname.length < 2;
  return isCut || UPLOAD_PATH.test(at.pathname);
}
