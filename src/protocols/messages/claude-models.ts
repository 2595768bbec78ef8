// Traits of Anthropic's models, both at Anthropic and at clouds that serve them. Models are
// identified by the names that Anthropic uses.
import type { MessagesDialect } from "./dialect.ts";

const LOW_TO_HIGH = ["low", "medium", "high"];

/**
 * Thinking mode and rejected fields per model family. A model that is newer than this list is
 * treated like the newest family.
 */
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
