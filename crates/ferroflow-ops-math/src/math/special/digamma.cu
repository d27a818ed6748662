[](f64 v) -> f64 {
        f64 reflected = 0, shift = 0;
        if (v <= 0) {
            if (v == floor(v)) return 0.0 / 0.0 * v;
            reflected = 3.14159265358979323846 / tan(3.14159265358979323846 * (v - round(v)));
            v = 1 - v;
        }
        for (; v < 10; v += 1) shift += 1 / v;
        f64 z = 1 / (v * v);
        f64 series = z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z *
            (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
        return log(v) - 0.5 / v - series - shift - reflected;
    }((f64)x)