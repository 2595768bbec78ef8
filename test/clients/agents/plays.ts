import type { Play } from "../clients.ts";
import { stage } from "../stage.ts";
import { agentChecks } from "./checks.ts";
import { CODING } from "./coding.ts";

export const AGENTS: readonly Play[] = [...CODING].map((agent) => ({
  names: [agent.name, "agents"],
  title: `${agent.package} ${agent.version}`,
  async cast() {
    const installed = await agent.install();
    const at = await stage(["model"]);
    return {
      checks: agentChecks(agent, installed, at),
      [Symbol.asyncDispose]: () => at[Symbol.asyncDispose](),
    };
  },
}));
