// Generates docs/reference/errors: the kinds of errors, and every error code.
import { ERRORS, type ErrorKind } from "../../src/model/error.ts";
import { collectErrorCodes, type FoundCode } from "./error-codes.ts";
import { OPERATOR_ERRORS, PROVIDER_ERRORS, REQUEST_ERRORS, type ErrorText } from "./error-texts.ts";
import { code, divided, page, type ReferencePage, sentence, table } from "./markdown.ts";

const KINDS: { readonly [kind in ErrorKind]: string } = {
  invalid: "The request is not valid",
  context_length: "The request is longer than the context of the model",
  content_policy: "The content was blocked by a policy",
  unsupported: "The model or provider does not support a part of the request",
  unauthenticated: "The key is missing or not valid",
  forbidden: "The key may not do this",
  privacy: "No provider meets the required privacy",
  not_found: "The model, path, or object is unknown",
  conflict: "The state of an object does not allow the request",
  mismatch: "The request contradicts an earlier request",
  too_large: "The request is too large",
  quota: "A budget of the key or its account is used up",
  rate_limited: "A rate limit is reached",
  overloaded: "The gateway or the provider has no capacity",
  timeout: "The provider did not respond in time",
  upstream: "The provider failed, or its response is not valid",
  upstream_auth: "The provider rejected the credential of the gateway",
  upstream_quota: "The account of the gateway at the provider has no credit",
  attestation: "The provider reports that it stored content that it must not store",
  unavailable: "The gateway cannot serve the request now",
  canceled: "The client canceled the request",
  internal: "The gateway failed. The message is only in the log",
};
const FALLBACK = { never: "No", next: "Yes", opt_in: "If the route lists it" } as const;

interface Group {
  readonly slug: string;
  readonly title: string;
  readonly about: string;
  readonly texts: Readonly<Record<string, ErrorText>>;
}

const found = collectErrorCodes();
/** Kinds of errors that the same request does not have at another time or with another key. */
const ACCESS_KINDS: readonly ErrorKind[] = [
  "unauthenticated",
  "forbidden",
  "privacy",
  "conflict",
  "mismatch",
  "quota",
  "rate_limited",
  "overloaded",
  "timeout",
  "unavailable",
  "internal",
];
const isAccessError = (name: string): boolean =>
  [...(found.get(name)?.kinds ?? [])].some((kind) => ACCESS_KINDS.includes(kind));
const requestErrors = (isWanted: (name: string) => boolean) =>
  Object.fromEntries(Object.entries(REQUEST_ERRORS).filter(([name]) => isWanted(name)));

export const GROUPS: readonly Group[] = [
  {
    slug: "requests",
    title: "Request errors",
    about: "errors in the content of a request",
    texts: requestErrors((name) => !isAccessError(name)),
  },
  {
    slug: "access",
    title: "Access and limit errors",
    about: "errors that depend on the key, its limits, privacy, and the state of the gateway",
    texts: requestErrors(isAccessError),
  },
  {
    slug: "providers",
    title: "Provider errors",
    about: "errors that clients receive when a call to a provider fails",
    texts: PROVIDER_ERRORS,
  },
  {
    slug: "operators",
    title: "Operator errors",
    about: "errors of the command line, the admin API, and the start of a gateway",
    texts: OPERATOR_ERRORS,
  },
];

/** Returns the status and the kind of a code: "404 `not_found`". */
function factsOf(of: FoundCode | undefined, status: number | undefined): string {
  const kinds = [...(of?.kinds ?? [])];
  if (status !== undefined) return `Status ${status}.`;
  if (kinds.length === 0) return "The status is the status of the failure.";
  const shown = kinds.map((kind) => `${ERRORS[kind][0]} (${code(kind)})`);
  return `Status ${shown.join(" or ")}.`;
}

function entry(name: string, [meaning, remedy, status]: ErrorText): string {
  return [
    `## ${code(name)}`,
    `${factsOf(found.get(name), status)} ${sentence(meaning)} ${sentence(remedy)}`,
  ].join("\n\n");
}

export function errorPages(): ReferencePage[] {
  const all = GROUPS.flatMap(({ slug, title, about, texts }) => {
    const entries = Object.entries(texts).toSorted(([a], [b]) => (a < b ? -1 : 1));
    return divided({ slug, title, entries }, ([name, text]) => entry(name, text)).map((part) => ({
      ...part,
      about,
      reader: slug === "operators" ? "operators" : "application developers",
    }));
  });
  const pages = all.map(({ slug, title, about, reader, entries }) =>
    page(`errors/${slug}.md`, [
      `# ${title}`,
      `This page is for ${reader}. It lists ${about}, by their code. [Errors](../errors.md) describes the form of an error.`,
      ...entries.map(([name, text]) => entry(name, text)),
    ]),
  );
  const index = page("errors.md", [
    "# Errors",
    "This page is for application developers and operators. It describes the form of errors and lists their kinds. The codes are on these pages:",
    all.map(({ slug, title, about }) => `- **[${title}](errors/${slug}.md)**: ${about}`).join("\n"),
    "## Form",
    "An error has the format of the endpoint's API, so that SDKs recognize it. In OpenAI's format:",
    '```json\n{\n  "error": {\n    "message": "Model openai/gpt-6 not found, or this key may not use it.",\n    "type": "invalid_request_error",\n    "param": "model",\n    "code": "model_not_found"\n  }\n}\n```',
    table(
      ["Member", "Meaning"],
      [
        ["`message`", "Cause of the error, and the remedy"],
        ["`type`", "Class of the error in the API of the vendor"],
        ["`param`", "Field that caused the error, or `null`"],
        ["`code`", "Error code. Programs should compare this field"],
        ["`details`", "Facts for programs, such as the limit that was reached"],
      ],
    ),
    "The response has the header `x-request-id`, which is also in the gateway's log. If a retry may succeed, it has `retry-after`.",
    "## Kinds",
    'The kind of an error decides its HTTP status and whether the next candidate is tried. The column "Cooldown" names what is tried last for some time.',
    table(
      ["Kind", "Status", "Meaning", "Fallback", "Cooldown"],
      (Object.keys(ERRORS) as ErrorKind[]).map((kind) => {
        const [status, retry, cooldown] = ERRORS[kind] as readonly [
          number,
          keyof typeof FALLBACK,
          string?,
        ];
        return [
          code(kind),
          `${status}`,
          KINDS[kind],
          FALLBACK[retry],
          cooldown?.replace("+", ", ") ?? "",
        ];
      }),
    ),
    "An error without its own code has the kind as its code. Chat completions and responses send these codes instead, as OpenAI's API does: `context_length_exceeded`, `permission_denied`, `upstream_error`, `attestation_failed`, and `internal_error`.",
  ]);
  return [index, ...pages];
}
