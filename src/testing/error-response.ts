import { jsonResponse } from "./upstream/scripted-response.ts";
import { protocolAtPath } from "./upstream/model-script.ts";
import type { ScriptedReply } from "./upstream/upstream.ts";

/** Options of an error response, besides its status and message. */
export interface ErrorResponseOptions {
  /** Type of the error. Default: the protocol's usual type for the status. */
  readonly type?: string;
  readonly code?: string;
  readonly param?: string;
  /** Value of the `retry-after` header, as it is sent: "2", a date, or invalid text. */
  readonly retryAfter?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Returns an error in the format of the protocol that the path belongs to. */
export function errorResponse(
  status: number,
  message: string,
  about: ErrorResponseOptions = {},
): ScriptedReply {
  return (request) => {
    const headers = {
      ...(about.retryAfter && { "retry-after": about.retryAfter }),
      ...about.headers,
    };
    const spoken = protocolAtPath(request.path.replace(/\/(count_tokens|input_tokens)$/, ""));
    const body =
      spoken === "messages"
        ? {
            type: "error",
            error: { type: about.type ?? ANTHROPIC_ERROR_TYPES[status] ?? "api_error", message },
            request_id: `req_${request.number}`,
          }
        : {
            error: {
              message,
              type: about.type ?? OPENAI_ERROR_TYPES[status] ?? "server_error",
              param: about.param ?? null,
              code: about.code ?? null,
            },
          };
    const answer = jsonResponse(body, status);
    return { ...answer, headers: { ...answer.headers, ...headers } };
  };
}

const ANTHROPIC_ERROR_TYPES: { readonly [status: number]: string } = {
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

const OPENAI_ERROR_TYPES: { readonly [status: number]: string } = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "invalid_request_error",
  413: "invalid_request_error",
  422: "invalid_request_error",
  429: "rate_limit_error",
};
