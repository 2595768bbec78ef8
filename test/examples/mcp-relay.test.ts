// The package's own tests, as its author runs them.
await import("../../examples/packages/frontend-mcp-relay/test/mcp-relay.test.ts");
