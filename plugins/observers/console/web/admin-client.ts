// Client of the admin API. The console runs the same commands as any other client.

/** Error response of a command. */
export class CommandError extends Error {
  override readonly name = "Refusal";
  readonly status: number;
  readonly code: string;
  readonly hint: string | undefined;
  /** URL for signing in with the identity provider, if one is configured. */
  readonly signIn: string | undefined;
  constructor(
    status: number,
    body: { message?: string; code?: string; hint?: string },
    signIn?: string,
  ) {
    super(body.message ?? `The gateway returned status ${status}.`);
    this.status = status;
    this.code = body.code ?? "";
    this.hint = body.hint;
    this.signIn = signIn;
  }
}

type Input = Readonly<Record<string, unknown>>;

const sessionEndListeners = new Set<() => void>();
/** Registers a listener for the end of the session. Returns a function that removes it. */
export function onSessionEnded(hear: () => void): () => void {
  sessionEndListeners.add(hear);
  return () => void sessionEndListeners.delete(hear);
}

/** Headers of every request. A form on another site cannot send them. */
export const REQUEST_HEADERS = {
  "content-type": "application/json",
  "x-tollgate-console": "1",
} as const;

export async function runCommand<T>(
  command: string,
  input: Input = {},
  signal?: AbortSignal,
): Promise<T> {
  const answer = await fetch(`/admin/v1/${command}`, {
    method: "POST",
    headers: REQUEST_HEADERS,
    body: JSON.stringify(input),
    credentials: "same-origin",
    ...(signal && { signal }),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new CommandError(0, {
      code: "unreachable",
      message: "The gateway is unreachable.",
      hint: "It may be restarting. This page retries automatically.",
    });
  });
  return readResponse<T>(answer);
}

/** Returns the response body, or throws the error that it contains. */
export async function readResponse<T>(answer: Response): Promise<T> {
  const body = (await answer.json().catch(() => ({}))) as Record<string, any>;
  if (answer.ok) return body as T;
  if (answer.status === 401) for (const hear of sessionEndListeners) hear();
  throw new CommandError(answer.status, body["problem"] ?? body["error"] ?? body, body["sign_in"]);
}
