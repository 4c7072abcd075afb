package media

import "context"

func pdfText(context.Context, []byte) (string, error) { return "", errPDF }
