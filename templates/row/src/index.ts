import { fromRow } from "tollgate/protocols/compatible";

// A provider as data: where it is, what it speaks, how it differs. No code.
export default fromRow({
  name: "acme",
  summary: "Acme",
  base: "https://api.acme.example/v1",
  protocols: { "chat-completions": { maxTokens: "max_tokens" } },
});
