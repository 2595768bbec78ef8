import { json } from "./answer.ts";
import { spokenAt } from "./speech.ts";
import type { Reaction } from "./upstream.ts";

/** What an error says beside its status and its message. */
export interface FailureOptions {
  /** Unless told, the protocol's usual type for the status. */
  readonly type?: string;
  readonly code?: string;
  readonly param?: string;
  /** As it is written: "2", a date, nonsense. */
  readonly retryAfter?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An error in the shape of the protocol that the path belongs to. */
export function failing(status: number, message: string, about: FailureOptions = {}): Reaction {
  return (asked) => {
    const headers = {
      ...(about.retryAfter && { "retry-after": about.retryAfter }),
      ...about.headers,
    };
    const spoken = spokenAt(asked.path.replace(/\/(count_tokens|input_tokens)$/, ""));
    const body =
      spoken === "messages"
        ? {
            type: "error",
            error: { type: about.type ?? MESSAGES[status] ?? "api_error", message },
            request_id: `req_${asked.n}`,
          }
        : {
            error: {
              message,
              type: about.type ?? OPENAI[status] ?? "server_error",
              param: about.param ?? null,
              code: about.code ?? null,
            },
          };
    const answer = json(body, status);
    return { ...answer, headers: { ...answer.headers, ...headers } };
  };
}

const MESSAGES: { readonly [status: number]: string } = {
  400: "invalid_request_error",
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  422: "invalid_request_error",
  429: "rate_limit_error",
  504: "timeout_error",
  529: "overloaded_error",
};

const OPENAI: { readonly [status: number]: string } = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "invalid_request_error",
  413: "invalid_request_error",
  422: "invalid_request_error",
  429: "rate_limit_error",
};
