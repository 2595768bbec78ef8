import { fromRow } from "tollgate/protocols/compatible";

// A provider as data, without code: its base URL, its protocols, and its quirks.
export default fromRow({
  name: "acme",
  summary: "Acme",
  base: "https://api.acme.example/v1",
  protocols: { "chat-completions": { maxTokens: "max_tokens" } },
});
