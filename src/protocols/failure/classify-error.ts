// Classifies provider errors with one vocabulary for all protocols. Providers of one protocol use
// error names of another, and proxies in front of them use their own names.
//
// A fact about an account or a target is accepted only from a machine-readable source: status,
// type, or code. Message text only distinguishes errors of the request itself. It may quote what
// the client wrote, and one client's text must not change the routing of other requests.
import type { ErrorKind } from "../../model/error.ts";

const KIND_BY_STATUS: Readonly<Record<number, ErrorKind>> = {
  400: "invalid",
  401: "upstream_auth",
  402: "upstream_quota",
  403: "upstream_auth",
  404: "not_found",
  408: "timeout",
  409: "conflict",
  413: "too_large",
  422: "invalid",
  429: "rate_limited",
  498: "overloaded",
  503: "overloaded",
  504: "timeout",
  522: "timeout",
  524: "timeout",
  529: "overloaded",
};

const names = (kind: ErrorKind, sentence: string): [string, ErrorKind][] =>
  sentence.split(" ").map((name) => [name, kind]);

/** Error kinds by type, code, status name, or reason of all vendors, in lower case. */
const KIND_BY_NAME: ReadonlyMap<string, ErrorKind> = new Map([
  ...names(
    "upstream_auth",
    "authentication_error invalid_api_key unauthenticated permission_error permission_denied account_deactivated " +
      "organization_on_hold unsupported_country_region_territory minimax_1004 minimax_2049",
  ),
  ...names(
    "upstream_quota",
    "billing_error insufficient_quota insufficient_credits insufficient_balance usage_not_included arrearage " +
      "billing_hard_limit_reached billing_not_active enforced_spend_limit_reached exceeded_current_quota_error minimax_1008",
  ),
  ...names(
    "rate_limited",
    "rate_limit_error rate_limit_exceeded rate_limited rate_limit too_many_requests resource_exhausted minimax_1002",
  ),
  ...names(
    "overloaded",
    "overloaded_error overloaded engine_overloaded_error server_is_overloaded slow_down unavailable service_unavailable",
  ),
  ...names("timeout", "timeout_error deadline_exceeded"),
  ...names("context_length", "context_length_exceeded exceed_context_size_error prompt_too_long"),
  ...names(
    "content_policy",
    "content_filter content_policy_violation image_content_policy_violation image_generation_user_error " +
      "moderation_blocked bio_policy data_inspection_failed minimax_1026 minimax_1027",
  ),
  ...names("not_found", "not_found_error model_not_found not_found"),
  ...names("conflict", "conflict_error aborted already_exists"),
  ...names("too_large", "request_too_large"),
  ...names(
    "invalid",
    "invalid_request_error invalid_argument failed_precondition out_of_range invalid_prompt string_above_max_length",
  ),
  ...names("unsupported", "unimplemented"),
  ...names("upstream", "api_error server_error internal unknown data_loss cancelled"),
]);

/**
 * Matches reasons that concern the account. Some providers reject a wrong key, or a key used from a
 * wrong location, with status 400 and put the reason in the body.
 */
const ACCOUNT_REASON = /^(?:api_key|account|consumer|service)_/;

const namedIn = (names: readonly string[]): ErrorKind | undefined => {
  let vague: ErrorKind | undefined;
  for (const name of names) {
    const small = name.toLowerCase();
    const kind =
      KIND_BY_NAME.get(small) ?? (ACCOUNT_REASON.test(small) ? "upstream_auth" : undefined);
    if (kind !== undefined && kind !== "invalid" && kind !== "upstream") return kind;
    vague ??= kind;
  }
  return vague;
};

/**
 * Error kinds determined by status that an error name can override, with the kinds that override
 * them. Proxies turn these failures into one another. Any other status takes precedence over names.
 */
const OVERRIDABLE_KINDS: { readonly [K in ErrorKind]?: "all" | readonly ErrorKind[] } = {
  invalid: "all",
  upstream: "all",
  upstream_auth: ["upstream_quota", "content_policy"],
  rate_limited: ["upstream_quota", "overloaded"],
  too_large: ["context_length"],
};

/**
 * Matches messages of many vendors about a request that exceeds the context length, to distinguish
 * it from an invalid request.
 */
const CONTEXT_LENGTH_TEXT =
  /prompt is too long|prompt_too_long|context[_ ](?:length|limit|window)|maximum context|(?:input|prompt)(?: \w+)? is too long|exceeds the maximum number of tokens|exceed_context_size|available context size|too many (?:input )?tokens|reduce the length/i;
const CONTENT_POLICY_TEXT =
  /content[_ ](?:policy|filter)|content filtering policy|content management policy|safety (?:system|policy)|data_inspection/i;

/**
 * Returns the kind of an error.
 *
 * @param status HTTP status. 0 in the middle of a response, where there is none.
 * @param named Error names, most specific first.
 */
export function classifyError(status: number, named: readonly string[], prose: string): ErrorKind {
  const byStatus =
    KIND_BY_STATUS[status] ?? (status >= 400 && status < 500 ? "invalid" : ("upstream" as const));
  const byName = namedIn(named);
  const yields = OVERRIDABLE_KINDS[byStatus];
  const kind =
    byName !== undefined && (yields === "all" || yields?.includes(byName)) ? byName : byStatus;
  if (kind !== "invalid" && kind !== "too_large" && kind !== "upstream") return kind;
  if (CONTEXT_LENGTH_TEXT.test(prose)) return "context_length";
  return kind === "invalid" && CONTENT_POLICY_TEXT.test(prose) ? "content_policy" : kind;
}
