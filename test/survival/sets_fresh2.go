package main

// A second round of such sets.

var freshSpanish = set{
	name: "second spanish", people: peopleFresh, join: "%s. %s",
	attrs: []attribute{
		{name: "ciudad", values: []string{"Sevilla", "Bilbao", "Murcia", "Lugo", "Gijón"}, say: []string{"{p} vive en {v}", "{p} tiene su casa en {v}"}, update: []string{"{p} se ha mudado a {v}", "{p} vive ahora en {v}", "{p} se mudó a {v}"}},
		{name: "tía", values: []string{"Sevilla", "Bilbao"}, of: 3, say: []string{"La tía de {p} vive en {v}"}},
		{name: "oficio", values: []string{"panadero", "piloto", "dentista", "albañil"}, say: []string{"{p} trabaja como {v}", "{p} es {v} de profesión"}, update: []string{"{p} trabaja ahora como {v}"}},
		{name: "teléfono", values: phones, say: []string{"El teléfono de {p} es el {v}", "Teléfono de {p}: {v}"}, update: []string{"El nuevo teléfono de {p} es el {v}"}},
		{name: "garaje", values: pins, say: []string{"El código del garaje de {p} es {v}", "Código del garaje de {p}: {v}"}, update: []string{"El código del garaje de {p} cambió, ahora es {v}"}},
		{name: "sótano", values: pins, say: []string{"El código del sótano de {p} es {v}"}},
		{name: "cumple", values: []string{"el 3 de mayo", "el 4 de mayo", "el 11 de junio"}, say: []string{"{p} cumple años {v}", "El cumpleaños de {p} es {v}"}},
		{name: "gustos", values: []string{"el queso", "el pescado", "el chocolate", "el vino"}, each: 2, say: []string{"A {p} le gusta {v}", "A {p} le gusta mucho {v}"}, not: []string{"A {p} ya no le gusta {v}", "A {p} no le gusta más {v}"}},
		{name: "alergia", values: []string{"las nueces", "el polen", "el látex"}, of: 2, say: []string{"{p} tiene alergia a {v}"}},
		{name: "nunca", values: []string{"alcohol", "café", "cerveza"}, of: 2, say: []string{"{p} no bebe nunca {v}", "{p} nunca bebe {v}"}},
		{name: "idioma", values: []string{"danés", "persa", "vasco"}, each: 2, say: []string{"{p} habla {v}", "{p} habla bien {v}"}},
		{name: "coche", values: []string{"Seat", "Volvo", "Fiat", "Skoda"}, say: []string{"{p} conduce un {v}", "El coche de {p} es un {v}"}, update: []string{"{p} conduce ahora un {v}"}},
		{name: "alquiler", values: []string{"870 euros", "920 euros", "1140 euros"}, of: 2, say: []string{"{p} paga {v} de alquiler", "El alquiler de {p} es de {v}"}, update: []string{"El alquiler de {p} subió a {v}"}},
		{name: "gato", values: []string{"Misi", "Félix", "Luna"}, of: 2, say: []string{"El gato de {p} se llama {v}"}},
		{name: "taquilla", values: pins, say: []string{"{p} tiene la taquilla {v}", "La taquilla de {p} es la {v}"}},
		{name: "talla", values: []string{"38", "39", "43"}, say: []string{"{p} calza un {v}"}},
		{name: "equipo", values: []string{"Betis", "Celta", "Osasuna"}, say: []string{"{p} es del {v}", "El equipo de {p} es el {v}"}},
	},
}
