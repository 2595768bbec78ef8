// Client of the control socket: sends a command to the gateway that uses a state directory.
import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { type ErrorKind, fail } from "../../model/error.ts";
import type { Json, JsonObject } from "../../model/values.ts";
import { findControlSocket, isHandoffInProgress } from "./control-socket-path.ts";

/** Encodes amounts as text in both directions, because JSON has no bigint. */
export const jsonReplacer = (_: string, value: unknown) =>
  typeof value === "bigint" ? `${value}` : value;

/** Errors of a connection that the gateway closed before it responded. */
const ENDED_CODES: ReadonlySet<string | undefined> = new Set(["ECONNRESET", "EPIPE"]);

/**
 * @param path State directory. Throws the code "not_running" if no gateway answers there.
 */
export async function callControl(
  path: string,
  command: string,
  input: JsonObject = {},
): Promise<Json> {
  const socketPath = await findControlSocket(path);
  const post = () => postCommand(socketPath, command, JSON.stringify(input, jsonReplacer));
  const { status, text } = await retryDuringHandoff(post, path).catch(
    (error: NodeJS.ErrnoException) =>
      isNotRunningError(error)
        ? fail("unavailable", `No gateway is running at ${path}.`, { code: "not_running" })
        : ENDED_CODES.has(error.code)
          ? fail("unavailable", `The gateway at ${path} ended before it responded.`, {
              code: "gateway_ended",
            })
          : fail("internal", `Cannot use the control socket ${socketPath}: ${error.message}`, {
              cause: error,
            }),
  );
  const body = JSON.parse(text) as { value: Json; error: { kind: ErrorKind; message: string } };
  if (status === 200) return body.value;
  const { kind, message, ...more } = body.error;
  return fail(kind, message, more);
}

/** Maximum time of a hot restart until the new process responds, in milliseconds. */
const HANDOFF_TIMEOUT_MS = 30_000;
const RETRY_DELAY_MS = 20;

/**
 * Retries while a hot restart is in progress, and once more after it has ended. After that, a
 * gateway responds or no gateway is running.
 */
async function retryDuringHandoff<T>(ask: () => Promise<T>, stateDir: string): Promise<T> {
  const deadline = performance.now() + HANDOFF_TIMEOUT_MS;
  for (let last = false; ; await sleep(RETRY_DELAY_MS)) {
    try {
      return await ask();
    } catch (error) {
      if (last || !isNotRunningError(error as NodeJS.ErrnoException)) throw error;
      last = performance.now() > deadline || !(await isHandoffInProgress(stateDir));
    }
  }
}

const isNotRunningError = ({ code = "" }: NodeJS.ErrnoException) =>
  ["ENOENT", "ECONNREFUSED", "ENOTDIR"].includes(code);

/** Throws if a gateway responds on this state directory. */
export async function assertNoneAnswers(stateDir: string): Promise<void> {
  const alive = await postCommand(await findControlSocket(stateDir), "status", "{}").then(
    ({ text }) => text,
    (error: NodeJS.ErrnoException) => (isNotRunningError(error) ? undefined : "{}"),
  );
  if (alive !== undefined)
    fail(
      "conflict",
      `Another gateway${pidIn(alive)} is using ${stateDir}. Stop it, or set another state_dir for this gateway.`,
      { code: "already_running" },
    );
}

function pidIn(text: string): string {
  try {
    const { value } = JSON.parse(text) as { value?: { pid?: unknown } };
    return typeof value?.pid === "number" ? ` (pid ${value.pid})` : "";
  } catch {
    return "";
  }
}

const postCommand = (socketPath: string, command: string, body: string) =>
  new Promise<{ status: number; text: string }>((resolve, reject) => {
    const path = `/${encodeURIComponent(command)}`;
    const req = request({ socketPath, path, method: "POST", agent: false }, (res) => {
      const chunks: Buffer[] = [];
      res.on("data", (chunk: Buffer) => chunks.push(chunk));
      res.on("error", reject);
      res.on("end", () =>
        resolve({ status: res.statusCode ?? 0, text: Buffer.concat(chunks).toString() }),
      );
    });
    req.on("error", reject);
    req.end(body);
  });
