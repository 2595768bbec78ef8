// What Anthropic's models take of this wire, wherever they are reached: at Anthropic, and at the clouds that serve them. By the names
// that Anthropic has for them.
import type { MessagesDialect } from "./dialect.ts";

const LOW_TO_HIGH = ["low", "medium", "high"];

/** How each family is asked to think, and what it refuses. What is newer than this list is taken to be like the newest. */
export const claude: MessagesDialect = {
  thinking: "adaptive",
  efforts: [...LOW_TO_HIGH, "xhigh", "max"],
  sampling: "none",
  systemMessages: true,
  maxTokens: 32_000,
  models: [
    {
      of: ["claude-3*"],
      thinking: "none",
      sampling: "all",
      systemMessages: false,
      strictTools: false,
      maxTokens: 4096,
    },
    { of: ["claude-3-7*"], thinking: "budget", maxTokens: 32_000 },
    {
      of: ["claude-opus-4*", "claude-sonnet-4*", "claude-haiku-4*"],
      thinking: "budget",
      sampling: "either",
      systemMessages: false,
    },
    { of: ["claude-opus-4-1*", "claude-opus-4-2*", "claude-sonnet-4-2*"], strictTools: false },
    {
      of: ["claude-opus-4-6*", "claude-sonnet-4-6*"],
      thinking: "adaptive",
      efforts: [...LOW_TO_HIGH, "max"],
    },
    { of: ["claude-opus-4-7*", "claude-opus-4-8*"], thinking: "adaptive", sampling: "none" },
    { of: ["claude-fable-*", "claude-opus-5-5*", "claude-sonnet-5-5*"], thinking: "always" },
  ],
};
