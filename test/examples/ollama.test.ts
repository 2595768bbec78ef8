// The package's own tests, as its author plays them.
await import("../../examples/packages/frontend-ollama/test/ollama.test.ts");
