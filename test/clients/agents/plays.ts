import type { Play } from "../clients.ts";
import { stage } from "../stage.ts";
import type { Agent } from "./agent.ts";
import { agentChecks } from "./checks.ts";
import { CODING } from "./coding.ts";
import { FRAMEWORKS } from "./frameworks.ts";

export const ALL: readonly Agent[] = [...CODING, ...FRAMEWORKS];

export const AGENTS: readonly Play[] = ALL.map((agent) => ({
  names: [agent.name, "agents"],
  title: `${agent.package} ${agent.version}`,
  async cast() {
    const installed = await agent.install();
    const at = await stage([]);
    return {
      checks: agentChecks(agent, installed, at),
      [Symbol.asyncDispose]: () => at[Symbol.asyncDispose](),
    };
  },
}));
