import type { JsonObject } from "tollgate/plugin";
import type { ScriptProtocol } from "tollgate/testing";
import type { Call } from "../client.ts";
import type { Command } from "../stage.ts";

/**
 * The checks of every agent. A client without a setting for non-streaming responses has no check of
 * them.
 */
export type CheckName =
  | "plain answer"
  | "streamed answer"
  | "tool call"
  | "provider error"
  | "broken stream";

/** A coding client or an agent framework that runs one prompt from the command line. */
export interface Agent {
  /** Name on the command line of the suite. */
  readonly name: string;
  /** Name of the package in its registry. */
  readonly package: string;
  readonly version: string;
  /** Number of its users, with the source of the figure. */
  readonly users: string;
  /** Protocol between the client and the gateway. */
  readonly protocol: ScriptProtocol;
  /** Whether the client can request a non-streaming response. */
  readonly plain: boolean;
  /** Installs the client. Returns the path of its program or script. */
  install(): Promise<string>;
  command(of: AgentPrompt): Promise<Command>;
  /** The call that makes the client write a file. */
  writes(path: string, text: string): Call;
  /** Checks that fail because of the client, with the reason. */
  readonly faults?: Partial<Readonly<Record<CheckName, string>>>;
}

export interface AgentPrompt {
  /** Result of `install`. */
  readonly installed: string;
  /** URL of the gateway, without /v1. */
  readonly url: string;
  readonly key: string;
  /** Model name that the client sends. */
  readonly model: string;
  /** Home and working directory of the client. It is empty. */
  readonly cwd: string;
  readonly prompt: string;
  readonly stream: boolean;
}

/** A tool call with the arguments that most clients use. */
export const writing =
  (tool: string, pathKey: string, textKey: string, more: JsonObject = {}) =>
  (path: string, text: string): Call => ({
    tool,
    args: { [pathKey]: path, [textKey]: text, ...more },
  });
