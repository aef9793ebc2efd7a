// Relative, so that the page also works behind a port-forward or a path prefix.
SwaggerUIBundle({ url: "openapi.json", dom_id: "#ui", deepLinking: true, validatorUrl: null });
